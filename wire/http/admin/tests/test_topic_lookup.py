"""From names to topics."""

import pytest

from magnetar.core.kernel.errors import SubscriptionNotFound
from magnetar.wire.http.admin.topic_lookup import Target, having, message_id, subscription_of
from magnetar.wire.http.tests.visitor import Visitor


async def test_what_is_there_and_what_is_not(visitor: Visitor) -> None:
    a, b = await visitor.topic("a"), await visitor.topic("b-partition-3")
    await b.subscription("s")
    assert [topic for topic, _ in having([a, b], "s")] == [b]
    with pytest.raises(SubscriptionNotFound):
        having([a, b], "other")
    with pytest.raises(SubscriptionNotFound):
        subscription_of(a, "s")
    assert message_id(b, (1, 2)).partition_index == 3


def test_a_target_is_the_end_unless_it_says_otherwise() -> None:
    assert Target().position == (2**63 - 1, 2**63 - 1)
    assert Target(1, 2).position == (1, 2)
