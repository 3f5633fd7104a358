"""Offsets of a transaction, as stored, and which partitions they make unstable."""

from __future__ import annotations

import pytest

from magnetar.core.transactions.transaction import PendingCommit, Transaction, TransactionState
from magnetar.wire.kafka.groups.commit import CommittedPosition
from magnetar.wire.kafka.groups.transactional_offsets import decode, encode, unstable

COMMIT = CommittedPosition(offset=5)


def transaction(
    name: str, *pending: PendingCommit, state: TransactionState = TransactionState.ONGOING
) -> Transaction:
    parties = tuple({commit.participant for commit in pending})
    return Transaction(
        name, writer=1, epoch=0, timeout_ms=1, state=state, participants=parties, pending=pending
    )


def promise(group: str, *partitions: tuple[str, int]) -> PendingCommit:
    return PendingCommit(group, encode([(topic, index, COMMIT) for topic, index in partitions]))


def test_what_is_stored_is_read() -> None:
    offsets = [("t", 0, COMMIT), ("tenant/ns/t", 7, CommittedPosition(offset=0, note="m"))]
    assert decode(encode(offsets)) == offsets


def test_each_partition_of_the_group_and_of_no_other() -> None:
    found = [
        transaction("a", promise("g", ("t", 0), ("t", 1)), promise("g", ("u", 0))),
        transaction("b", promise("g", ("t", 0)), promise("other", ("t", 2))),
        transaction("c"),
    ]
    assert unstable(found, "g") == {("t", 0), ("t", 1), ("u", 0)}
    assert unstable(found, "other") == {("t", 2)}
    assert unstable(found, "none") == set()


@pytest.mark.parametrize(
    ("state", "is_unstable"),
    [
        (TransactionState.ONGOING, True),
        (TransactionState.COMMITTING, True),
        (TransactionState.ABORTING, False),
    ],
)
def test_until_it_is_decided_and_done(state: TransactionState, is_unstable: bool) -> None:
    found = [transaction("a", promise("g", ("t", 0)), state=state)]
    assert bool(unstable(found, "g")) is is_unstable
