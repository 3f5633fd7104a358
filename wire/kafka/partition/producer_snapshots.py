"""The state of a partition's producers, over restarts: their batches are known again.

A snapshot is taken when the topic is unloaded, and none in between: after a crash there is an old
one or none, and the end of the log is replayed, as much as producers may have under way, many times
over. Kafka has its snapshots beside the segments (`ProducerStateManager.takeSnapshot` of 4.1).

Entries are not held for it: what is forgotten is only that a batch was here before, of a producer
that has sent nothing since. It is loaded by who writes first; to read costs nothing.
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
    """A stored snapshot: msgpack, fields by place."""

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
    """What keeps them, of one partition."""
    path = f"{SNAPSHOTS}/{ledger.name}"
    snapshots = MetadataSnapshots(storage, ledger, path, encode, decode)
    return Fold(storage, ledger, producers, snapshots, SNAPSHOT_POLICY)
