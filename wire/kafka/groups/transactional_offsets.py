"""Offsets that a transaction commits: how its coordinator stores them until it is decided. Pure.

Kafka writes them to `__consumer_offsets` behind a marker (`pendingTransactionalOffsets` in
`OffsetMetadataManager` of 4.2). Here they are part of the transaction's own record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from magnetar.core.transactions.transaction import Transaction, TransactionState
from magnetar.wire.kafka.groups.commit import CommittedPosition
from magnetar.wire.kafka.groups.subscriptions import TopicPartition

TransactionalOffsets = list[tuple[str, int, CommittedPosition]]
"""Topic, partition, and what to commit."""

encode: Final = msgspec.json.encode
decode: Final = msgspec.json.Decoder(TransactionalOffsets).decode


def unstable(transactions: Iterable[Transaction], group: str) -> set[TopicPartition]:
    """Partitions of a group whose offset depends on a transaction that is not over (KIP-447).

    One that is to be aborted changes no offset. One that is to be committed has changed it once its
    record has no pending commits.
    """
    return {
        (topic, index)
        for transaction in transactions
        if group in transaction.participants and transaction.state is not TransactionState.ABORTING
        for commit in transaction.pending
        if commit.participant == group
        for topic, index, _ in decode(commit.data)
    }
