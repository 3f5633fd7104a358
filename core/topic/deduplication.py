"""Deduplication: what a producer sends a second time is stored once.

Theory. Sequence ids of one producer name only rise. Two numbers per name say all: the highest that
was handed to storage (pushed) and the highest that is stored. A message not above `stored` is a
duplicate, and its producer is told that all is well. One above `stored` and not above `pushed` may
yet fail: nobody can say, so its producer is to come again. Parts of a large message share one
sequence id, which counts with the last of them.

    handed to storage: pushed = id        stored: stored = id        failed: pushed = stored

What is stored survives in a cursor of the topic: its properties say the highest id of each name, up
to its mark-delete position; what came behind that is read again when the topic is loaded. The
cursor holds entries back from being trimmed, so it follows every now and then.

Invariants: `stored` never says more than storage holds; the cursor's properties and its position
are of the same moment; no more than a limit of names are known, the longest unheard go first. Those
whose producer has been away for hours go as well, whenever somebody looks (`forget_silent`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

from magnetar.core.entry import kafka_form
from magnetar.core.entry.pulsar_metadata import chunk, sequence
from magnetar.core.errors import BrokerError, NotFound
from magnetar.core.ledger.appends import Appended
from magnetar.core.ledger.chain import Position
from magnetar.core.ledger.cursor import Cursor
from magnetar.core.ledger.managed import ManagedLedger
from magnetar.core.ledger.storage import Storage

CURSOR: Final = "pulsar.dedup"
NAMES_MAX: Final = 10_000
"""Producer names known to one topic."""
SNAPSHOT_ENTRIES: Final = 1_000
SNAPSHOT_MS_MIN: Final = 1_000
"""Between two snapshots, however much is published."""
READ_ENTRIES: Final = 5_000
READ_BYTES: Final = 1024 * 1024


class Verdict(enum.Enum):
    """What to do with a message."""

    NEW = enum.auto()
    DUPLICATE = enum.auto()
    """It is stored."""
    UNKNOWN = enum.auto()
    """It is on its way to storage, and might not get there."""


class Books:
    """The two numbers of each name. Pure: no storage, no clock."""

    __slots__ = ("pushed", "stored")

    def __init__(self) -> None:
        self.pushed: dict[str, int] = {}
        self.stored: dict[str, int] = {}
        """Who was heard last is last."""

    def judge(self, name: str, sequence_id: int) -> Verdict:
        """Whether a message with that (highest) sequence id was seen before."""
        if sequence_id <= self.stored.get(name, -1):
            return Verdict.DUPLICATE
        return Verdict.UNKNOWN if sequence_id <= self.pushed.get(name, -1) else Verdict.NEW

    def push(self, name: str, sequence_id: int) -> None:
        """It is handed to storage."""
        self.pushed[name] = max(sequence_id, self.pushed.get(name, -1))

    def store(self, name: str, sequence_id: int) -> None:
        """It is stored."""
        self.stored[name] = max(sequence_id, self.stored.pop(name, -1))
        while len(self.stored) > NAMES_MAX:
            self.forget(next(iter(self.stored)))

    def forget(self, name: str) -> None:
        """Its producer will not come again."""
        self.stored.pop(name, None)
        self.pushed.pop(name, None)

    def fail(self, name: str) -> None:
        """What was handed to storage is not there, nor anything behind it."""
        if name in self.stored:
            self.pushed[name] = self.stored[name]
        else:
            self.pushed.pop(name, None)


class Deduplication:
    """The books of one topic, and the cursor that keeps them."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self.books = Books()
        self._storage = storage
        self._ledger = ledger
        self._cursor = Cursor(storage, ledger, CURSOR, ledger.chain.confirmed, durable=True)
        self._since_snapshot = 0
        self._snapshot_ms = 0
        self._in_flight = 0
        self._seen: dict[str, tuple[int, int]] = {}
        """Of each name, the highest id that was stored when somebody last looked, and since when it
        is that: so nothing is noted with each message."""

    @property
    def mark_delete(self) -> Position:
        """Nothing behind this may be trimmed."""
        return self._cursor.mark_delete

    async def open(self) -> None:
        """Know what the topic knew before, or begin to take notes now."""
        try:
            await self._cursor.open()
        except NotFound:
            await self._cursor.create()
            return
        for name, sequence_id in self._cursor.longs.items():
            self.books.store(name, sequence_id)
        await self._read_again()
        for name, sequence_id in self.books.stored.items():
            self.books.push(name, sequence_id)

    async def _read_again(self) -> None:
        """What was stored after the last snapshot."""
        chain = self._ledger.chain
        position = chain.normal(self._cursor.read_from)
        while chain.has(position):
            part = await self._ledger.losses.read_round(position, READ_ENTRIES, READ_BYTES)
            for place in range(len(part.payloads)):
                self._note(part.sent(place))
            self._since_snapshot += len(part.payloads)
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))

    def _note(self, sent: bytes) -> None:
        if kafka_form.batch_in(sent) is not None:
            return  # Kafka's producers are known by other numbers
        found = sequence(sent)
        if found is not None and counts(sent):
            self.books.store(found[0].decode(errors="replace"), found[1])

    # -- publishing ---------------------------------------------------------------------------

    def push(self, name: str, highest: int) -> None:
        """A run of one producer goes to storage."""
        self._in_flight += 1
        if highest >= 0:
            self.books.push(name, highest)

    def settled(
        self, name: str, highest: int, entries: int, result: Position | BrokerError
    ) -> None:
        """A run of one producer, with that highest sequence id, is stored or has failed."""
        self._in_flight -= 1
        if not isinstance(result, tuple):
            self.books.fail(name)
            return
        if highest >= 0:
            self.books.store(name, highest)
        self._since_snapshot += entries
        if self._since_snapshot >= SNAPSHOT_ENTRIES:
            now_ms = self._storage.clock.wall_ms()
            if abs(now_ms - self._snapshot_ms) >= SNAPSHOT_MS_MIN:
                self.snapshot((result[0], result[1] + entries - 1))

    def snapshot(self, position: Position | None = None) -> None:
        """Have the books saved as they stand: all that is stored up to there is in them."""
        position = self._ledger.chain.confirmed if position is None else position
        # Kafka's producers are not in the books, and what they wrote must not be held either
        if not self._since_snapshot and self._cursor.mark_delete >= position:
            return
        self._since_snapshot = 0
        self._snapshot_ms = self._storage.clock.wall_ms()
        self._cursor.longs = dict(self.books.stored)
        self._cursor.ack_to(position)

    def snapshot_if_idle(self) -> None:
        """Nothing is on its way: entries that were stored since may be let go."""
        if not self._in_flight:
            self.snapshot()

    def forget_silent(self, here: Iterable[str], now_ms: int, kept_ms: int) -> None:
        """Forget names whose producer is not here and has sent nothing for so long."""
        books, before = self.books, self._seen
        attached = set(here)
        self._seen = {}
        for name, highest in list(books.stored.items()):
            known, since_ms = before.get(name, (-1, now_ms))
            if known != highest or name in attached:
                since_ms = now_ms
            if now_ms - since_ms >= kept_ms > 0 and books.pushed.get(name, highest) == highest:
                books.forget(name)
                self._since_snapshot += 1  # what is saved is to forget it too
            else:
                self._seen[name] = (highest, since_ms)

    async def close(self) -> None:
        """Save the books: the topic is unloaded, and nothing is on its way any more."""
        self.snapshot()
        await self._cursor.close()

    async def delete(self) -> None:
        """Nobody wants them any more."""
        await self._cursor.delete()


class Once:
    """Deduplication of one topic, on or off: what the topic and its sessions talk to."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self.notes: Deduplication | None = None
        """Present while it is on."""
        self.noted = False
        """There are notes in storage from before the topic was loaded."""
        self._storage = storage
        self._ledger = ledger

    @property
    def on(self) -> bool:
        return self.notes is not None

    async def turn(self, *, on: bool) -> None:
        """On or off. Notes are of no use once anything was missed: turned off, they go."""
        if on and self.notes is None:
            begun = Deduplication(self._storage, self._ledger)
            await begun.open()
            self.notes = begun
        elif not on:
            notes, self.notes = self.notes, None
            if notes is not None:
                await notes.delete()
            elif self.noted:
                await forget(self._storage, self._ledger)
        self.noted = False

    def begin(self, name: str, highest: int, entries: int, done: Appended) -> Appended:
        """A run of new messages goes to storage; returns who is to hear what becomes of it."""
        notes = self.notes
        if notes is None:
            return done
        notes.push(name, highest)

        def settled(result: Position | BrokerError) -> None:
            notes.settled(name, highest, entries, result)
            done(result)

        return settled

    def last_of(self, name: str) -> int:
        """The highest sequence id stored of a producer; -1 if that is not known."""
        return self.notes.books.stored.get(name, -1) if self.notes is not None else -1

    @property
    def mark_delete(self) -> Position | None:
        """Nothing behind this may be trimmed; None for no matter."""
        return self.notes.mark_delete if self.notes is not None else None

    def forget_silent(self, here: Iterable[str], now_ms: int, kept_ms: int) -> None:
        if self.notes is not None:
            self.notes.forget_silent(here, now_ms, kept_ms)

    def snapshot_if_idle(self) -> None:
        if self.notes is not None:
            self.notes.snapshot_if_idle()

    async def close(self) -> None:
        if self.notes is not None:
            await self.notes.close()

    async def delete(self) -> None:
        if self.notes is not None:
            await self.notes.delete()


def counts(payload: bytes) -> bool:
    """Whether its sequence id is done with: of a large message only the last part says so."""
    part = chunk(payload)
    return part is None or part.chunk_id == part.chunks - 1


async def forget(storage: Storage, ledger: ManagedLedger) -> None:
    """Deduplication is off: notes from when it was on would say less than is stored."""
    cursor = Cursor(storage, ledger, CURSOR, ledger.chain.confirmed, durable=True)
    await cursor.open()
    await cursor.delete()
