"""The records of all sessions that last, in memory and in a compacted topic.

    awake    the client is connected: its last record is in memory, and stored or on its way there
    asleep   the record is stored, and its place is in the index (`session_index.py`); it is also
             in memory if it is among the last ones, up to a budget in bytes

So sleeping sessions take 36 to 72 bytes of memory each, besides the budget; all else is a file.

The progress of a connected session (`record.py`) is in the same topic, with a key that no client id
can be. It counts if it is behind the session's last record; it is deleted when the session falls
asleep or ends, and what a crash leaves of it with the next connection.

The logs of messages have to keep what sleeping sessions have not read. `lowest` has, for each log,
a position that is not behind that of any of them. It is exact after a scan, which reads the
topic from its beginning, in small steps; sessions that leave only raise it in the next scan.

Invariants: a session is awake, asleep, or has no record; a position in the index is that of the
session's last record; `lowest` is never too high.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Final, NamedTuple

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.ledger.log.chain import START, Position
from magnetar.wire.mqtt.clients import record as records
from magnetar.wire.mqtt.clients.record import SessionRecord
from magnetar.wire.mqtt.clients.session_index import NEVER, IndexedSession, SessionIndex
from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog, Stored

log = logging.getLogger(__name__)

OVERHEAD_BYTES: Final = 250
"""What a record in memory costs besides its own bytes: two objects, and a place in a mapping."""
INDEX_BYTES: Final = 40
"""What a sleeping session costs in the index, whose slots are two thirds or less full."""
PROGRESS: Final = b"\0"
"""Before the client id, in which U+0000 is not allowed, in the key of a session's progress."""
RECORDS_PER_TURN: Final = 200
"""Records that are read before other tasks run."""
SCAN_SHARE: Final = 100
"""A scan rests for so many times as long as it took."""

Due = Callable[[SessionRecord], int]
"""When a sleeping session has to be looked at, in ms since 1970."""


class _Needs(NamedTuple):
    """What a sleeping session needs of others."""

    due: int
    """In seconds since 1970; `NEVER` for nothing."""
    positions: tuple[tuple[str, Position], ...]
    """By log."""


class SessionRecords:
    """See the module's docstring."""

    def __init__(
        self, stored: KeyedLog, clock: Clock, index: SessionIndex, due: Due, cached_bytes_max: int
    ) -> None:
        self._stored = stored
        self._clock = clock
        self._index = index
        self._due = due
        self._cached_bytes_max = cached_bytes_max
        self._awake: dict[str, bytes] = {}
        self._cached: dict[str, bytes] = {}
        """Records of sleeping sessions, those that slept last at the end."""
        self._cached_bytes = 0
        self._progress: dict[str, bytes] = {}
        """What counts: that of connected sessions, and of those that were when a server crashed."""
        self._with_progress: set[str] = set()
        """Client ids of which there is some in the topic, whether it counts or not."""
        self._awake_bytes = 0
        """Of records and progress."""
        self._falling_asleep: dict[str, bytes] = {}
        """Records of sessions without a connection that are on their way to storage."""
        self._lowest: dict[str, Position] = {}
        self._since_scan: dict[str, Position] = {}
        """The same for the sessions that have fallen asleep since a scan began."""
        self.readers: Counter[str] = Counter()
        """How many sleeping sessions need something, by log: at the last scan, and those that have
        fallen asleep since.
        """
        self._woken = False
        """Whether a session has left since the last scan began."""
        self._scan_after = 0.0

    @property
    def stored(self) -> KeyedLog:
        return self._stored

    # -- figures ----------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        return len(self._awake) + len(self._index)

    @property
    def asleep(self) -> int:
        return len(self._index)

    @property
    def bytes_stored(self) -> int:
        """The size of all records, without those that are replaced."""
        return self._index.bytes_stored + self._awake_bytes

    @property
    def bytes_in_memory(self) -> int:
        encoded = self._cached_bytes + self._awake_bytes
        overhead = OVERHEAD_BYTES * (len(self._cached) + len(self._awake) + len(self._progress))
        return encoded + overhead + INDEX_BYTES * len(self._index)

    # -- opening ----------------------------------------------------------------------------------

    async def open(self, replayed: Callable[[str, SessionRecord | None], None]) -> None:
        """Index the stored records, if there are any. `replayed` is called with each, also with
        those that later ones replace, and with None for a removed one; at last with those that have
        progress.
        """
        if not await self._stored.exists():
            return

        def apply(message: KeyedMessage) -> None:
            client_id, data = message.packet.topic.decode(), message.packet.payload
            if message.packet.topic[:1] == PROGRESS:
                self._replay_progress(client_id[1:], data)
                return
            self._woken = self._woken or client_id in self._index
            record = self._decoded(client_id, data) if data else None
            if record is None:
                self._discard(client_id)
            else:
                self._set_asleep(client_id, self._needs(record), data, message.position)
            replayed(client_id, record)

        await self._stored.replay(apply)
        await self._look_at_progress(replayed)

    def _replay_progress(self, client_id: str, data: bytes) -> None:
        self._void_progress(client_id)
        if data:
            self._with_progress.add(client_id)
            self._set_progress(client_id, data)
        else:
            self._with_progress.discard(client_id)

    async def _look_at_progress(
        self, replayed: Callable[[str, SessionRecord | None], None]
    ) -> None:
        """Delete what counts no more, and have the logs keep what the rest needs."""
        for client_id in list(self._with_progress):
            if client_id in self._index and client_id in self._progress:
                record = await self.read(client_id)
                lower(self._lowest, positions(record) if record is not None else ())
                self._woken = True  # a scan finds out what it needs no more
                replayed(client_id, record)
            else:
                self._void_progress(client_id)
                self._delete_progress(client_id)

    @staticmethod
    def _decoded(client_id: str, data: bytes) -> SessionRecord | None:
        try:
            return records.decode(data)
        except Corrupted as error:
            log.error("the session of %r is lost: %s", client_id, error)
            return None

    def _latest(self, client_id: str, data: bytes) -> SessionRecord | None:
        """The record with the session's progress; without it, if only that is damaged."""
        progress = self._progress.get(client_id)
        if progress is None:
            return self._decoded(client_id, data)
        try:
            return records.decode(data, progress)
        except Corrupted as error:
            text = "the session of %r is resumed from its last whole record: %s"
            log.warning(text, client_id, error)
            self._void_progress(client_id)
            return self._decoded(client_id, data)

    # -- reading ----------------------------------------------------------------------------------

    def __contains__(self, client_id: str) -> bool:
        return client_id in self._awake or client_id in self._index

    def is_awake(self, client_id: str) -> bool:
        return client_id in self._awake

    async def read(self, client_id: str) -> SessionRecord | None:
        """The last record of a session; None if it has none, or it is damaged."""
        data = self._awake.get(client_id) or self._cached.get(client_id)
        if data is None:
            indexed = self._index.get(client_id)
            if indexed is None:
                return None
            data = await self._read_at(indexed.position, client_id)
            if data is None:
                return None
        record = self._latest(client_id, data)
        if record is None:
            self._discard(client_id)
        return record

    async def _read_at(self, position: Position, client_id: str) -> bytes | None:
        try:
            message = await self._stored.message_at(position)
        except Corrupted as error:
            log.error("the session of %r is lost: %s", client_id, error)
            self._discard(client_id)
            return None
        if message.packet.topic.decode() != client_id:
            return None  # another session has the same fingerprint
        return message.packet.payload

    async def due(self, now_ms: int, limit: int) -> list[str]:
        """The client ids of some sleeping sessions that are due, or nearly."""
        found = []
        for fingerprint, position in self._index.due(now_ms // 1000, limit):
            try:
                message = await self._stored.message_at(position)
            except Corrupted as error:
                log.error("%s: a session that is due is lost: %s", self._stored.name, error)
                self._index.remove_found(fingerprint)
                continue
            found.append(message.packet.topic.decode())
        return found

    def awake(self) -> list[tuple[bytes, bytes]]:
        """The encoded records of connected clients, and their progress."""
        return [(data, self._progress.get(name, b"")) for name, data in self._awake.items()]

    def falling_asleep(self) -> list[str]:
        """The client ids whose records are on their way to storage, and in no index yet."""
        return list(self._falling_asleep)

    async def sleeping(self) -> AsyncGenerator[tuple[str, SessionRecord], None]:
        """The records of sleeping sessions, read from the topic in the order of their storage.
        Those that fall asleep or wake up meanwhile may be found or not.
        """
        if not len(self._index):
            return
        count = 0
        async with aclosing(self._stored.messages()) as messages:
            async for message in messages:
                count += 1
                if count % RECORDS_PER_TURN == 0:
                    await trio.lowlevel.checkpoint()
                client_id = message.packet.topic.decode()
                indexed = self._index.get(client_id)
                if indexed is None or indexed.position != message.position:
                    continue
                record = self._latest(client_id, message.packet.payload)
                if record is not None:
                    yield client_id, record

    # -- writing ----------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Load the topic of the records, so that `put` can write."""
        if not self._stored.is_open:
            await self._stored.open()

    def put(self, client_id: str, data: bytes, done: Callable[[BrokerError | None], None]) -> None:
        """Store the record of a connected client. Plain call, after `prepare`."""
        self._set_awake(client_id, data)
        self._stored.put(client_id.encode(), data, _error_for(done))

    def put_progress(
        self, client_id: str, data: bytes, done: Callable[[BrokerError | None], None]
    ) -> None:
        """Store what has changed of a connected client's record. Plain call, after `put`."""
        self._set_progress(client_id, data)
        self._with_progress.add(client_id)
        self._stored.put(PROGRESS + client_id.encode(), data, _error_for(done))

    def put_asleep(
        self, client_id: str, record: SessionRecord, done: Callable[[BrokerError | None], None]
    ) -> None:
        """Store the record of a session without a connection. If that fails, it stays awake. Plain
        call, after `prepare`; of many that wait for storage, only their bytes are in memory.
        """
        data = records.encode(record)
        self._set_awake(client_id, data)
        self._store_asleep(client_id, record, data, done)

    def _store_asleep(
        self,
        client_id: str,
        record: SessionRecord,
        data: bytes,
        done: Callable[[BrokerError | None], None],
    ) -> None:
        needs = self._needs(record)
        self._falling_asleep[client_id] = data

        def stored(result: Position | BrokerError) -> None:
            if self._falling_asleep.get(client_id) is data:
                del self._falling_asleep[client_id]
            if isinstance(result, BrokerError):
                done(result)
                return
            if self._awake.get(client_id) is data:  # else it has a later record, or none
                self._remove_awake(client_id)
                self._set_asleep(client_id, needs, data, result)
                self._delete_progress(client_id)
            done(None)

        self._stored.put(client_id.encode(), data, stored)

    async def sleep(self, client_id: str, record: SessionRecord) -> None:
        """Store the record of a session without a connection. If that fails, it stays awake."""
        data = records.encode(record)
        self._set_awake(client_id, data)
        await self.prepare()
        waiting = Completion[None]()
        self._store_asleep(client_id, record, data, waiting.done)
        await waiting.result()

    async def remove(self, client_id: str) -> None:
        """Delete the record; stored when this returns. If that fails, it is still there."""
        if client_id in self:
            await self._stored.store(client_id.encode(), b"")
            self._discard(client_id)
            self._delete_progress(client_id)

    def postpone(self, client_id: str, due_ms: int) -> None:
        """Have a sleeping session be due later."""
        indexed = self._index.get(client_id)
        if indexed is not None:
            self._index.put(client_id, indexed._replace(due=due_ms // 1000 + 1))

    def _set_awake(self, client_id: str, data: bytes) -> None:
        self._discard(client_id)
        self._awake[client_id] = data
        self._awake_bytes += _size(client_id, data)

    def _set_progress(self, client_id: str, data: bytes) -> None:
        self._void_progress(client_id)
        self._progress[client_id] = data
        self._awake_bytes += _size(client_id, data)

    def _void_progress(self, client_id: str) -> None:
        """The record is newer than the progress."""
        data = self._progress.pop(client_id, None)
        if data is not None:
            self._awake_bytes -= _size(client_id, data)

    def _delete_progress(self, client_id: str) -> None:
        """Delete what counts no more. If that fails, the next start does it."""
        if client_id in self._with_progress:
            self._with_progress.discard(client_id)
            self._stored.put(PROGRESS + client_id.encode(), b"", _ignore)

    def _remove_awake(self, client_id: str) -> None:
        data = self._awake.pop(client_id, None)
        if data is not None:
            self._awake_bytes -= _size(client_id, data)

    def _set_asleep(self, client_id: str, needs: _Needs, data: bytes, position: Position) -> None:
        self._index.put(client_id, IndexedSession(position, _size(client_id, data), needs.due))
        for lowest in (self._lowest, self._since_scan):
            lower(lowest, needs.positions)
        self.readers.update({name for name, _ in needs.positions})
        self._void_progress(client_id)
        self._uncache(client_id)
        self._cached[client_id] = data
        self._cached_bytes += _size(client_id, data)
        while self._cached_bytes + OVERHEAD_BYTES * len(self._cached) > self._cached_bytes_max:
            self._uncache(next(iter(self._cached)))

    def _needs(self, record: SessionRecord) -> _Needs:
        due = min(self._due(record) // 1000, NEVER)
        return _Needs(due, tuple(positions(record)))

    def _uncache(self, client_id: str) -> None:
        data = self._cached.pop(client_id, None)
        if data is not None:
            self._cached_bytes -= _size(client_id, data)

    def _discard(self, client_id: str) -> None:
        """Forget what is in memory of a session."""
        self._remove_awake(client_id)
        self._void_progress(client_id)
        self._uncache(client_id)
        if self._index.remove(client_id):
            self._woken = True

    # -- what they need of the logs ---------------------------------------------------------------

    async def scan_if_due(self) -> None:
        """Make `lowest` exact, if sessions have left and the last scan is not too recent."""
        began = self._clock.monotonic()
        if not self._woken or began < self._scan_after:
            return
        self._woken = False
        self._since_scan = {}
        found: dict[str, Position] = {}
        readers: Counter[str] = Counter()
        try:
            async with aclosing(self.sleeping()) as sleeping:
                async for _, record in sleeping:
                    needs = list(positions(record))
                    lower(found, needs)
                    readers.update({name for name, _ in needs})
        except BaseException:
            self._woken = True
            raise
        lower(found, self._since_scan.items())
        self._lowest, self.readers = found, readers
        now = self._clock.monotonic()
        self._scan_after = now + SCAN_SHARE * (now - began)

    @property
    def lowest(self) -> dict[str, Position]:
        """The lowest position that a sleeping session needs, or a lower one, by log."""
        return dict(self._lowest)


def _size(client_id: str, data: bytes) -> int:
    """The bytes of a record with its key, which may be the larger part."""
    return len(client_id.encode()) + len(data)


def positions(record: SessionRecord) -> Iterator[tuple[str, Position]]:
    """The positions that a session needs, by log. A place at `START` is none: the session only has
    messages in flight from that log.
    """
    for place in record.places:
        if (place.ledger_id, place.entry_id) != START:
            yield place.log, (place.ledger_id, place.entry_id)
    for one in record.in_flight:
        yield record.places[one.log].log, (one.ledger_id, one.entry_id)
    for mark in record.marks:
        yield mark.log, (mark.ledger_id, mark.entry_id)


def lower(lowest: dict[str, Position], found: Iterable[tuple[str, Position]]) -> None:
    """Lower each log's position to those that are found."""
    for name, position in found:
        known = lowest.get(name)
        if known is None or position < known:
            lowest[name] = position


def _error_for(done: Callable[[BrokerError | None], None]) -> Stored:
    """Calls `done` with the error, if there is one, and without the position."""

    def stored(result: Position | BrokerError) -> None:
        done(result if isinstance(result, BrokerError) else None)

    return stored


def _ignore(_result: Position | BrokerError) -> None:
    """Nobody waits."""
