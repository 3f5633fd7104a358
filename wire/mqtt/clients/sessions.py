"""All sessions of this server: those of connected clients, and the records of all that last.

    state        its record                       leaves for
    connected    if it lasts or has a will        asleep, or gone, when the connection ends
    asleep       ended_ms is set                  connected, or gone when it expires
    gone         none

A session lasts if its expiry interval is not zero (3.1.2.11.2), or if it is one of 3.1.1 without
clean session. The record is in memory, and in a compacted topic (`storage/keyed_log.py`). What is
in memory was stored, or is on its way to storage and nobody was told.

A restart ends all connections: a session that was connected is asleep from then on, its messages in
flight are doubtful, and its will is due.

Invariants: a client id has one connected session at most, which takes the turn of its id while it
connects; a session that has expired is never resumed.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol

import trio
from msgspec.structs import replace

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.mqtt.clients import record as records
from magnetar.wire.mqtt.clients.kept_records import KeptRecords
from magnetar.wire.mqtt.clients.record import SessionRecord, StoredWill
from magnetar.wire.mqtt.codec.packets import NEVER_EXPIRES
from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 0.5
DUE_PER_TURN: Final = 100
"""Sessions that end in one turn, after which other tasks run."""

PublishWill = Callable[[str, StoredWill], Awaitable[None]]
"""Publishes the will of a client id, and returns when it is stored."""


class ConnectedSession(Protocol):
    """A connected client as the others see it."""

    async def displace(self) -> SessionRecord | None:
        """Another connection has the same client id: end this one, and return its record."""
        ...

    async def last_record(self) -> SessionRecord | None:
        """The record that the ended connection leaves: with its session, if that lasts, and its
        will, if that is to be published; None without both.
        """
        ...

    def changed(self) -> None:
        """Have its record stored soon."""
        ...

    def save_if_dirty(self) -> None:
        """Store the record, if it has changed."""
        ...

    def positions(self) -> Iterator[tuple[str, Position]]:
        """The positions that it needs, by log."""
        ...

    def farewell(self) -> None:
        """The server stops: tell the client."""
        ...

    async def read_new_logs(self, *, whole: bool = False) -> None:
        """Read logs that have come since its subscriptions were made, from their beginning or from
        now on; stored when this returns.
        """
        ...


class Found(NamedTuple):
    """A session to be resumed."""

    record: SessionRecord
    crashed: bool
    """Whether its connection was open when a former process of the server ended."""


class Sessions:
    """See the module's docstring."""

    def __init__(self, stored: KeyedLog, clock: Clock, publish_will: PublishWill) -> None:
        self.connected: dict[str, ConnectedSession] = {}
        self.connected_max = 0
        """The most that were connected at the same time."""
        self.expired = 0
        """The number of sessions that have expired."""
        self._stored = stored
        self._clock = clock
        self._publish_will = publish_will
        self._records = KeptRecords()
        self._crashed: set[str] = set()
        """Sessions that were connected when a former process ended."""
        self._due: list[tuple[int, str]] = []
        """A heap: when which session has to be looked at. May name sessions that are gone."""
        self._turns: dict[str, trio.Lock] = {}
        self.ended: Callable[[str, Iterable[str]], None] = _ignore
        """Called with client id and filters of a session that has ended."""

    @property
    def topic(self) -> TopicName:
        """The topic of the records."""
        return self._stored.name

    @property
    def count(self) -> int:
        """The number of sessions with a record."""
        return len(self._records)

    @property
    def bytes_kept(self) -> int:
        """Memory of their records."""
        return self._records.bytes

    @property
    def asleep(self) -> int:
        """The number of sessions without a connection."""
        return len(self._records) - sum(1 for one in self.connected if one in self._records)

    def names(self) -> list[str]:
        return list(self._records)

    def record_of(self, client_id: str) -> SessionRecord | None:
        """The last record of a session; None if it has none, or it is damaged."""
        found = self._records.get(client_id)
        try:
            return None if found is None else records.decode(found)
        except Corrupted as error:
            log.error("the session of %r is lost: %s", client_id, error)
            self._records.remove(client_id)
            return None

    def all_records(self) -> Iterator[tuple[str, SessionRecord]]:
        for client_id in self.names():
            record = self.record_of(client_id)
            if record is not None:
                yield client_id, record

    # -- opening ----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load the records, if there are any."""
        if not await self._stored.exists():
            return
        await self._stored.replay(self._replayed)
        now_ms = self._clock.wall_ms()
        for count, client_id in enumerate(self.names()):
            if count % DUE_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            record = self.record_of(client_id)
            if record is None:
                continue
            if not record.ended_ms:
                self._crashed.add(client_id)
                record = replace(record, ended_ms=now_ms)
                self._records.keep(client_id, records.encode(record))
            self._schedule(client_id, record)
        if self._records:
            log.info("%d sessions of MQTT clients are kept", len(self._records))

    def _replayed(self, message: KeyedMessage) -> None:
        client_id, record = message.packet.topic.decode(), message.packet.payload
        if record:
            self._records.keep(client_id, record)
        else:
            self._records.remove(client_id)

    # -- connecting -------------------------------------------------------------------------------

    @asynccontextmanager
    async def turn_of(self, client_id: str) -> AsyncIterator[None]:
        """Connect, or end, one client id at a time."""
        lock = self._turns.setdefault(client_id, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._turns.pop(client_id, None)

    async def take(self, client_id: str, *, clean: bool) -> Found | None:
        """End the session's other connection, if there is one, and return what to resume.

        Its will is published now if the session ends, or without a delay (3.1.3.2.2).
        """
        crashed = client_id in self._crashed
        other = self.connected.pop(client_id, None)
        if other is not None:
            record, crashed = await other.displace(), False
        else:
            record = self._unexpired(client_id)
        resumed = None if clean or (record and not record.expiry_seconds) else record
        if record is not None and record.will is not None:
            is_due = resumed is None or (other is not None and not record.will.delay_seconds)
            if is_due:
                await self._publish_or_log(client_id, record.will)
        if resumed is None:
            await self._forget(client_id)
            return None
        return Found(replace(resumed, will=None), crashed)

    def _unexpired(self, client_id: str) -> SessionRecord | None:
        """The record, unless it has expired; then its session ends soon (`run`)."""
        record = self.record_of(client_id)
        if record is None or self._expires_ms(record) > self._clock.wall_ms():
            return record
        return replace(record, expiry_seconds=0)

    def enter(self, client_id: str, session: ConnectedSession) -> None:
        """The client is connected; the caller has its turn."""
        self.connected[client_id] = session
        self.connected_max = max(self.connected_max, len(self.connected))
        self._crashed.discard(client_id)

    async def give_back(self, client_id: str, record: SessionRecord) -> None:
        """The client has gone while it connected: the session sleeps again."""
        await self._fall_asleep(client_id, record)

    def has_record(self, client_id: str) -> bool:
        return client_id in self._records

    # -- records ----------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Load the topic of the records, so that `put` can write."""
        if not self._stored.is_open:
            await self._stored.open()

    def put(self, client_id: str, data: bytes, done: Callable[[BrokerError | None], None]) -> None:
        """Store a record. Plain call, after `prepare`."""
        self._records.keep(client_id, data)

        def stored(result: Position | BrokerError) -> None:
            done(result if isinstance(result, BrokerError) else None)

        self._stored.put(client_id.encode(), data, stored)

    async def store(self, client_id: str, record: SessionRecord) -> None:
        """Store a record, and wait until it is stored."""
        data = records.encode(record)
        self._records.keep(client_id, data)
        await self._stored.store(client_id.encode(), data)

    async def _forget(self, client_id: str) -> None:
        """Delete the record; stored when this returns."""
        self._crashed.discard(client_id)
        record = self.record_of(client_id)
        if record is not None:
            self.ended(client_id, (one.filter for one in record.subscriptions))
        if self._records.remove(client_id):
            await self._stored.store(client_id.encode(), b"")

    # -- the end of a connection ------------------------------------------------------------------

    def leave_at_once(self, client_id: str, session: ConnectedSession) -> None:
        """A connection has ended that has no record and leaves none. Plain call."""
        if self.connected.get(client_id) is session:
            del self.connected[client_id]

    async def leave(self, client_id: str, session: ConnectedSession) -> None:
        """A connection has ended: store its session, or forget it."""
        async with self.turn_of(client_id):
            if self.connected.get(client_id) is not session:
                return  # another connection has taken it over, and its record
            record = await session.last_record()
            del self.connected[client_id]
            try:
                if record is None:
                    await self._forget(client_id)
                else:
                    await self._fall_asleep(client_id, record)
            except BrokerError as error:
                log.warning("the session of %r is kept as it was last stored: %s", client_id, error)

    async def _fall_asleep(self, client_id: str, record: SessionRecord) -> None:
        record = replace(record, ended_ms=self._clock.wall_ms())
        if self._will_due_ms(record) <= record.ended_ms:
            assert record.will is not None
            await self._publish_or_log(client_id, record.will)
            record = replace(record, will=None)
        if not record.expiry_seconds and record.will is None:
            await self._forget(client_id)
            return
        await self.store(client_id, record)
        self._schedule(client_id, record)

    async def _publish_or_log(self, client_id: str, will: StoredWill) -> None:
        try:
            await self._publish_will(client_id, will)
        except BrokerError as error:
            log.warning("the will of %r is not published: %s", client_id, error)

    async def stop(self) -> None:
        """The server stops: end all connections, and store their sessions. Wills are published
        after the next start (3.1.2.5 permits that).
        """
        waits: list[Completion[Position]] = []
        for client_id, session in list(self.connected.items()):
            session.farewell()
            record = await session.last_record()
            del self.connected[client_id]
            if record is not None:
                data = records.encode(replace(record, ended_ms=self._clock.wall_ms()))
                waits.append(Completion())
                self._stored.put(client_id.encode(), data, waits[-1].done)
        for wait in waits:
            try:
                await wait.result()
            except BrokerError as error:
                log.warning("a session is kept as it was last stored: %s", error)

    # -- time -------------------------------------------------------------------------------------

    @staticmethod
    def _expires_ms(record: SessionRecord) -> int:
        if not record.ended_ms or record.expiry_seconds == NEVER_EXPIRES:
            return NEVER_MS
        return record.ended_ms + 1000 * record.expiry_seconds

    def _will_due_ms(self, record: SessionRecord) -> int:
        """When the will is published: after its delay, or when the session ends (3.1.3.2.2)."""
        if record.will is None or not record.ended_ms:
            return NEVER_MS
        return min(record.ended_ms + 1000 * record.will.delay_seconds, self._expires_ms(record))

    def _schedule(self, client_id: str, record: SessionRecord) -> None:
        due_ms = min(self._will_due_ms(record), self._expires_ms(record))
        if due_ms < NEVER_MS:
            heapq.heappush(self._due, (due_ms, client_id))

    async def run(self) -> None:
        """End sessions, and publish wills, when they are due; until cancelled."""
        while True:
            await trio.sleep(CHECK_SECONDS)
            await self.end_due()

    async def end_due(self) -> None:
        """End the sessions, and publish the wills, that are due now."""
        now_ms = self._clock.wall_ms()
        for _ in range(DUE_PER_TURN):
            if not self._due or self._due[0][0] > now_ms:
                return
            _, client_id = heapq.heappop(self._due)
            await self._look_at(client_id, now_ms)

    async def _look_at(self, client_id: str, now_ms: int) -> None:
        async with self.turn_of(client_id):
            if client_id in self.connected:
                return
            record = self.record_of(client_id)
            if record is None:
                return
            try:
                if self._will_due_ms(record) <= now_ms:
                    assert record.will is not None
                    await self._publish_will(client_id, record.will)
                    record = replace(record, will=None)
                    await self.store(client_id, record)
                if self._expires_ms(record) <= now_ms:
                    await self._forget(client_id)
                    self.expired += 1
                else:
                    self._schedule(client_id, record)
            except BrokerError as error:
                log.warning("the session of %r has to end, later: %s", client_id, error)
                heapq.heappush(self._due, (now_ms + RETRY_MS, client_id))


def _ignore(_client_id: str, _filters: Iterable[str]) -> None:
    """There are no shared subscriptions."""


NEVER_MS: Final = 1 << 62
RETRY_MS: Final = 5_000
