"""Snapshots of a partition's producer states, so that duplicates are known after a restart.

A snapshot is taken when the topic is unloaded, and at no other time. After a crash there is an old
one or none, and the end of the log is replayed: many times what producers may have under way. Kafka
stores its snapshots beside the segments (`ProducerStateManager.takeSnapshot` of 4.1).

The log may be trimmed before a snapshot covers it (`holds=False`): that loses only the batches of
producers that have sent nothing since. The first writer loads the state; readers do not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from magnetar.core.ledger.fold.fold import Fold, Snapshot, SnapshotPolicy
from magnetar.core.ledger.fold.snapshots import MetadataSnapshots
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.kafka.partition.producer_states import ProducerImage, ProducerStates

if TYPE_CHECKING:
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.storage import Storage

SNAPSHOTS: Final = "/magnetar/kafka/producers"
SNAPSHOT_POLICY: Final = SnapshotPolicy(
    "Kafka's producers",
    replay_entries=20_000,
    replay_bytes=64 * 1024 * 1024,
    holds=False,
)

ProducerImages = list[ProducerImage]


class ProducerSnapshot(Struct, frozen=True, array_like=True):
    """A stored snapshot: a msgpack array."""

    position: Position
    producers: ProducerImages
    created_ms: int = 0


_decode: Final = msgspec.msgpack.Decoder(ProducerSnapshot).decode


def encode(snapshot: Snapshot[ProducerImages]) -> bytes:
    stored = ProducerSnapshot(snapshot.position, snapshot.image, snapshot.created_ms or 0)
    return msgspec.msgpack.encode(stored)


def decode(data: bytes) -> Snapshot[ProducerImages]:
    stored = _decode(data)
    return Snapshot(stored.position, stored.producers, stored.created_ms)


def fold_of(
    storage: Storage, ledger: ManagedLedger, producers: ProducerStates
) -> Fold[ProducerImages]:
    """The fold of one partition's producer states."""
    path = f"{SNAPSHOTS}/{ledger.name}"
    snapshots = MetadataSnapshots(storage, ledger, path, encode, decode)
    return Fold(storage, ledger, producers, snapshots, SNAPSHOT_POLICY)
