"""The transactions of one log, kept over restarts: notes now and then, the rest read again.

Notes say how things stood at some position of the log. They are stored when so much was written
since the last ones, and when the topic is put away. Whoever loads the topic reads what is behind
them. Only logs that have ever had a transaction are followed; that is a property of the log, stored
before the first entry of one.

Invariant: notes are of a position that was confirmed, and of everything up to it.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
import trio
from msgspec import Struct

from magnetar.core.cluster.owned import OwnedRecord, RecordState
from magnetar.core.entry import kafka_batch, kafka_form
from magnetar.core.errors import BrokerError, Corrupted
from magnetar.core.ledger.chain import START, Position
from magnetar.core.transactions.log import Aborted, LogTransactions, Open, Writer

if TYPE_CHECKING:
    from magnetar.core.ledger.managed import ManagedLedger
    from magnetar.core.ledger.storage import Storage

log = logging.getLogger(__name__)

TRANSACTIONAL: Final = "magnetar.transactional"
"""Property of the log: there are, or were, transactions in it."""
NOTES: Final = "/magnetar/transactions/logs"
NOTED_ENTRIES: Final = 5_000
NOTED_BYTES: Final = 64 * 1024 * 1024
"""Written since the last notes; whichever comes first."""
READ_ENTRIES: Final = 1_000
READ_BYTES: Final = 4 * 1024 * 1024


class Notes(Struct, frozen=True):
    """As they are stored."""

    position: Position
    open: list[tuple[Writer, Open]] = []
    aborted: list[Aborted] = []


_encode: Final = msgspec.msgpack.encode
_decode: Final = msgspec.msgpack.Decoder(Notes).decode


class Followed:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self.state = LogTransactions()
        self._storage = storage
        self._ledger = ledger
        self._record = OwnedRecord(storage.metadata, f"{NOTES}/{ledger.name}", bytes, bytes)
        self._saving = trio.Lock()
        self._noted: Position = START
        self._noted_entries = ledger.entries_added
        self._noted_size = ledger.size

    async def begin(self) -> None:
        """Nothing in the log so far belongs to a transaction."""
        if self._record.state is RecordState.UNREAD:
            await self._record.claim()
        await self.save()

    async def load(self) -> None:
        """What was noted, and what came behind it."""
        await self._record.claim()
        stored = self._record.value
        chain = self._ledger.chain
        if stored is not None:
            notes = _decode(zlib.decompress(stored))
            # ledger ids are never used again: others are those of a log that had this name before
            if any(one.ledger_id == notes.position[0] for one in chain.segments):
                self.state.restore(notes.open, notes.aborted)
                self._noted = notes.position
        position = chain.after(self._noted) if self._noted != START else chain.first
        while chain.has(position):
            part = await self._ledger.losses.read_round(position, READ_ENTRIES, READ_BYTES)
            for place in range(len(part.payloads)):
                where = (part.ledger_id, part.first_entry + place)
                self.note(part.sent(place), part.header(place).first_index, where)
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))

    def note(self, sent: bytes, index: int, position: Position) -> None:
        """An entry as it is read; most have nothing to do with transactions."""
        batch = kafka_form.batch_in(sent)
        if batch is None:
            return
        try:
            header = kafka_batch.header_of(batch)
            if not header.attributes & kafka_batch.TRANSACTIONAL:
                return
            if header.attributes & kafka_batch.CONTROL:
                committed = kafka_batch.is_commit(batch)
                self.state.ended(header.producer_id, index, committed=committed)
            else:
                now_ms = self._storage.clock.wall_ms()
                self.state.wrote(header.producer_id, index, position, now_ms)
        except Corrupted as error:
            log.error("%s: nobody can read the batch at %d: %s", self._ledger.name, index, error)

    # -- notes --------------------------------------------------------------------------------

    def follow(self, spawn: Callable[..., None]) -> None:
        """More is confirmed: is it time for notes? Plain call."""
        ledger = self._ledger
        entries = ledger.entries_added - self._noted_entries
        if entries < NOTED_ENTRIES and ledger.size - self._noted_size < NOTED_BYTES:
            return
        self._noted_entries, self._noted_size = ledger.entries_added, ledger.size
        spawn(self._save_or_say)

    async def _save_or_say(self) -> None:
        try:
            await self.save()
        except BrokerError as error:
            log.warning("%s: no notes of its transactions: %s", self._ledger.name, error)

    async def save(self) -> None:
        """Store how things stand."""
        async with self._saving:
            position = self._ledger.chain.confirmed
            if position == self._noted:
                return
            segments = self._ledger.chain.segments
            self.state.forget_before(segments[0].first_index if segments else 0)
            notes = Notes(position, list(self.state.open.items()), self.state.aborted)
            await self._record.write(zlib.compress(_encode(notes)))
            self._noted = position

    async def forget(self) -> None:
        """The log is deleted."""
        if self._record.state is RecordState.UNREAD:
            await self._record.load()
        await self._record.delete()
