"""The encoding of a transaction's pending offset commits in its record. Pure.

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
"""Topic, partition, and commit."""

encode: Final = msgspec.json.encode
decode: Final = msgspec.json.Decoder(TransactionalOffsets).decode


def unstable(transactions: Iterable[Transaction], group: str) -> set[TopicPartition]:
    """Partitions of a group whose offset depends on an unfinished transaction (KIP-447).

    A transaction that is being aborted changes no offset. One that is being committed has changed
    all once its record has no pending commits.
    """
    return {
        (topic, index)
        for transaction in transactions
        if group in transaction.participants and transaction.state is not TransactionState.ABORTING
        for commit in transaction.pending
        if commit.participant == group
        for topic, index, _ in decode(commit.data)
    }
