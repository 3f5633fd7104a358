"""The transactions of one topic: an index of its log that outlives restarts.

Pulsar calls it the topic's transaction buffer (PIP-31). The index itself is the log's
(`core/ledger/read/transaction_index.py`), for readers of every kind ask it. Here is what makes it
durable: a fold, whose snapshots are records of the metadata store. Only logs that have, or ever
had, a transaction pay for that; a property of the log says so, which is stored before the first
entry of one.

Who stores an entry of a transaction, or a marker, notes it in the index when that is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from magnetar.core.entry.form import TransactionKey
from magnetar.core.ledger.fold.fold import Fold, FoldState, Snapshot, SnapshotPolicy
from magnetar.core.ledger.fold.snapshots import MetadataSnapshots
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.transaction_index import (
    Aborted,
    IndexImage,
    Open,
    TransactionIndex,
)

if TYPE_CHECKING:
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.storage import Storage

TRANSACTIONAL: Final = "magnetar.transactional"
"""Property of the log: there are, or were, transactions in it."""
SNAPSHOTS: Final = "/magnetar/transactions/logs"
SNAPSHOT_POLICY: Final = SnapshotPolicy("transactions", entries=5_000, bytes=64 * 1024 * 1024)


class TransactionSnapshot(Struct, frozen=True):
    """A stored snapshot: msgpack, fields by name."""

    position: Position
    open: list[tuple[TransactionKey, Open]] = []
    aborted: list[Aborted] = []
    created_ms: int = 0


_decode: Final = msgspec.msgpack.Decoder(TransactionSnapshot).decode


def encode(snapshot: Snapshot[IndexImage]) -> bytes:
    image = snapshot.image
    stored = TransactionSnapshot(
        snapshot.position, image.open, image.aborted, snapshot.created_ms or 0
    )
    return msgspec.msgpack.encode(stored)


def decode(data: bytes) -> Snapshot[IndexImage]:
    stored = _decode(data)
    return Snapshot(stored.position, IndexImage(stored.open, stored.aborted), stored.created_ms)


class TransactionBuffer:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self.present = False
        """There are, or ever were, transactions in the log."""
        self._ledger = ledger
        self.fold = Fold(
            storage,
            ledger,
            ledger.transactions,
            MetadataSnapshots(storage, ledger, f"{SNAPSHOTS}/{ledger.name}", encode, decode),
            SNAPSHOT_POLICY,
        )

    @property
    def index(self) -> TransactionIndex:
        return self._ledger.transactions

    async def load(self) -> None:
        """The log is opened: know its transactions, if there are any."""
        if TRANSACTIONAL in self._ledger.properties:
            await self.fold.load()
            self.present = True

    async def begin(self) -> None:
        """The first transaction is about to come: nothing in the log so far belongs to one."""
        if self.fold.state is FoldState.NEW:  # else an earlier try got so far
            await self.fold.begin()
        await self._ledger.set_property(TRANSACTIONAL, "")
        self.present = True

    async def close(self) -> None:
        """The log is unloaded, and nothing is on its way to it any more."""
        await self.fold.close()

    async def delete(self) -> None:
        """The log is deleted."""
        if self.present:
            await self.fold.delete()
