"""Offsets that are committed if a transaction is, as its coordinator keeps them. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from magnetar.core.transactions.coordinator import Coordinator
from magnetar.core.transactions.transaction import TransactionState
from magnetar.wire.kafka.groups.commit import CommittedPosition
from magnetar.wire.kafka.groups.subscriptions import Partition

Promised = list[tuple[str, int, CommittedPosition]]
"""Topic, partition, and what to commit."""

encode: Final = msgspec.json.encode
decode: Final = msgspec.json.Decoder(Promised).decode


def unstable(coordinator: Coordinator, group: str) -> set[Partition]:
    """Of which something is promised and not decided, or decided and not kept yet."""
    found: set[Partition] = set()
    for transaction in coordinator.all():
        if group not in transaction.parties or transaction.state is TransactionState.ABORTING:
            continue
        for promise in transaction.promises:
            if promise.to == group:
                found |= {(topic, index) for topic, index, _ in decode(promise.says)}
    return found
