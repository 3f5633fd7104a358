"""The transaction buffer: makes the index of a topic's transactions durable (PIP-31).

The index belongs to the log (`core/ledger/read/transaction_index.py`), because all readers use it.
A fold stores its snapshots as records of the metadata store. Only logs that have, or ever had, a
transaction pay for that: a property of the log marks them, which is stored before the first entry
of a transaction.

The code that appends an entry of a transaction, or a marker, notes it in the index when it is
stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio
from msgspec import Struct

from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.fold.fold import Fold, FoldState, Snapshot, SnapshotPolicy
from magnetar.core.ledger.fold.snapshots import MetadataSnapshots
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.transaction_index import (
    Aborted,
    IndexImage,
    Open,
    TransactionIndex,
)
from magnetar.core.topic.last_message import LastMessage

if TYPE_CHECKING:
    from magnetar.core.ledger.log.appends import Appended
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.storage import Storage
    from magnetar.core.ports.ledger_store import Done

TRANSACTIONAL: Final = "magnetar.transactional"
"""Property of the log: it has, or had, transactions."""
SNAPSHOTS: Final = "/magnetar/transactions/logs"
POLL_SECONDS: Final = 0.01
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


class AbortedTotal:
    """How many aborted transactions all loaded topics have, as they were counted last."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class TransactionalRun:
    """A run of entries of a transaction on its way to storage, which is noted when it is there. No
    closure: see `core/native/tests/test_sources.py`.
    """

    __slots__ = ("_done", "_key", "_ledger", "_now_ms")

    def __init__(
        self, ledger: ManagedLedger, key: TransactionKey, now_ms: int, done: Appended
    ) -> None:
        self._ledger = ledger
        self._key = key
        self._now_ms = now_ms
        self._done = done

    def stored(self, result: Position | BrokerError) -> None:
        if not isinstance(result, BrokerError):
            index = self._ledger.delivered_index(result)
            self._ledger.transactions.wrote(self._key, index, result, self._now_ms)
        self._done(result)


class TransactionalMarker:
    """The same for the marker that ends a transaction."""

    __slots__ = ("_committed", "_done", "_key", "_ledger")

    def __init__(
        self, ledger: ManagedLedger, key: TransactionKey, done: Done, *, committed: bool
    ) -> None:
        self._ledger = ledger
        self._key = key
        self._done = done
        self._committed = committed

    def stored(self, result: Position | BrokerError) -> None:
        if isinstance(result, BrokerError):
            self._done(result)
            return
        index = self._ledger.delivered_index(result)
        self._ledger.transactions.ended(self._key, index, committed=self._committed)
        self._done(None)


class TransactionBuffer:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self._ledger = ledger
        self._coming = False
        self.last = LastMessage(ledger)
        self.fold = Fold(
            storage,
            ledger,
            ledger.transactions,
            MetadataSnapshots(storage, ledger, f"{SNAPSHOTS}/{ledger.name}", encode, decode),
            SNAPSHOT_POLICY,
        )

    @property
    def present(self) -> bool:
        """Whether the log has, or ever had, transactions."""
        return self.index.present

    @property
    def checked(self) -> bool:
        """Whether messages may not state a transaction that they are not published in."""
        return self._coming or self.present

    @property
    def index(self) -> TransactionIndex:
        return self._ledger.transactions

    async def load(self) -> None:
        """Restore the index of a log that is opened."""
        if TRANSACTIONAL in self._ledger.properties:
            await self.fold.load()
            self.index.present = True

    async def check_from_now_on(self) -> None:
        """Begin to check messages, and wait until those on their way to storage are there. An entry
        behind the snapshot that states a transaction would be replayed as a part of it.
        """
        self._coming = True
        ledger = self._ledger
        stored = ledger.writes.bytes + ledger.pending_bytes
        while True:
            # of what fails nothing is stored: then it takes more of what comes later
            if not ledger.pending_bytes or ledger.writes.bytes >= stored:
                return
            await trio.sleep(POLL_SECONDS)

    async def begin(self) -> None:
        """Prepare for the first transaction: no entry so far belongs to one."""
        if self.fold.state is FoldState.NEW:  # else an earlier attempt failed after this
            await self.fold.begin()
        await self._ledger.set_property(TRANSACTIONAL, "")
        self.index.present = True

    async def close(self) -> None:
        """The log is unloaded, and no append is in flight."""
        await self.fold.close()

    async def delete(self) -> None:
        """The log is deleted."""
        if self.present:
            await self.fold.delete()
