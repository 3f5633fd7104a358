"""A list that is made and encoded in parts is the list."""

from typing import Any

import pytest

from magnetar.wire.kafka import apis
from magnetar.wire.kafka.messages.transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from magnetar.wire.kafka.session.context import RequestContext
from magnetar.wire.kafka.session.long_lists import FEW, long_list


def described(name: str) -> DescribedTransaction:
    return DescribedTransaction(
        error_code=0,
        transactional_id=name,
        transaction_state="Empty",
        transaction_timeout_ms=1,
        transaction_start_time_ms=2,
        producer_id=3,
        producer_epoch=4,
        topics=[],
    )


@pytest.mark.parametrize("count", [0, 1, FEW, 3 * FEW + 1])
async def test_all_of_it(count: int) -> None:
    async def make(name: str) -> DescribedTransaction:
        return described(name)

    key = DescribeTransactionsRequest.KEY
    names = [f"t{number}" for number in range(count)]
    caller: Any = None
    context = RequestContext(key, 0, 7, "", caller)
    empty = DescribeTransactionsResponse(transaction_states=[])
    whole = DescribeTransactionsResponse(transaction_states=list(map(described, names)))
    made = await long_list(context, empty, names, make)
    assert b"".join(made) == b"".join(apis.encode_response(key, 0, 7, whole))
