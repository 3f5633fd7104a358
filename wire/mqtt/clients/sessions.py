"""All sessions of this server: those of connected clients, and the records of all that last.

    state        its record                       leaves for
    connected    if it lasts or has a will        asleep, or gone, when the connection ends
    asleep       ended_ms is set                  connected, or gone when it expires
    gone         none

A session lasts if its expiry interval is not zero (3.1.2.11.2), or if it is one of 3.1.1 without
clean session. `session_records.py` has the records.

A restart ends all connections: a session that was connected is asleep from then on, its messages in
flight are doubtful, and its will is due. Its record still has no `ended_ms`.

Invariants: a client id has one connected session at most, which takes the turn of its id while it
connects; a session that has expired is never resumed.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import trio
from msgspec.structs import replace

from magnetar.core.kernel import errors
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.cooperation import KeyedLocks
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.security.identity import Identity
from magnetar.wire.mqtt.clients import record as records
from magnetar.wire.mqtt.clients.record import SessionRecord, StoredWill
from magnetar.wire.mqtt.clients.session_index import SessionIndex
from magnetar.wire.mqtt.clients.session_records import SessionRecords
from magnetar.wire.mqtt.codec.packets import NEVER_EXPIRES
from magnetar.wire.mqtt.delivery.logs import MqttLog
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog

log = logging.getLogger(__name__)

PERMANENT: Final = (errors.NotFound, errors.Refused)
"""Errors for which a will is given up, as it would fail again."""
CHECK_SECONDS: Final = 0.5
DUE_PER_TURN: Final = 100
"""Sessions that end in one turn, after which other tasks run."""

PublishWill = Callable[[str, StoredWill], Awaitable[None]]
"""Publishes the will of a client id, and returns when it is stored."""


class ConnectedSession(Protocol):
    """A connected client as the others see it."""

    identity: Identity

    async def displace(self) -> SessionRecord | None:
        """Another connection has the same client id: end this one, and return its record."""
        ...

    async def last_record(self) -> SessionRecord | None:
        """The record that the ended connection leaves: with its session, if that lasts, and its
        will, if that is to be published; None without both.
        """
        ...

    def last_record_now(self) -> SessionRecord | None:
        """The same as a plain call; None also if a publish is not stored yet."""
        ...

    def release(self) -> None:
        """Nobody uses it any more."""
        ...

    def may_read(self, filter: str, names: Sequence[TopicName]) -> bool:
        """Whether it may read what a filter matches in these topics; if not, it ends."""
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

    async def read_single(self, log: MqttLog, topic: str) -> None:
        """Read the log of one MQTT topic, which is new, from its beginning."""
        ...


class Sessions:
    """See the module's docstring."""

    def __init__(
        self, stored: KeyedLog, clock: Clock, publish_will: PublishWill, cached_bytes_max: int
    ) -> None:
        """`cached_bytes_max` limits the memory of sleeping sessions."""
        self.connected: dict[str, ConnectedSession] = {}
        self.connected_max = 0
        """The most that were connected at the same time."""
        self.expired = 0
        """The number of sessions that have expired."""
        self.topic: TopicName = stored.name
        """The topic of the records."""
        self._clock = clock
        self._publish_will = publish_will
        index = SessionIndex(secrets.token_bytes(16))
        self.records = SessionRecords(stored, clock, index, self._due_ms, cached_bytes_max)
        self._opened_ms = clock.wall_ms()
        """When sessions that a former process left connected fell asleep."""
        self._failed: dict[str, None] = {}
        """Sessions whose last record could not be stored."""
        self._retry_ms = 0
        """When those are looked at again."""
        self._turns: KeyedLocks[str] = KeyedLocks()
        self.ended: Callable[[str, Iterable[str]], None] = _ignore
        """Called with client id and filters of a session that has ended."""

    async def open(self, replayed: Callable[[str, SessionRecord | None], None]) -> None:
        """Index the records, if there are any; see `SessionRecords.open`."""
        self._opened_ms = self._clock.wall_ms()
        await self.records.open(replayed)
        if self.records.count:
            log.info("%d sessions of MQTT clients are kept", self.records.count)

    # -- connecting -------------------------------------------------------------------------------

    def turn_of(self, client_id: str) -> AbstractAsyncContextManager[None]:
        """Connect, or end, one client id at a time."""
        return self._turns.at(client_id)

    async def take(self, client_id: str, *, clean: bool) -> SessionRecord | None:
        """End the session's other connection, if there is one, and return what to resume.

        Its will is published now if the session ends, or without a delay (3.1.3.2.2).
        """
        other = self.connected.pop(client_id, None)
        if other is not None:
            record, crashed = await other.displace(), False
            ended_ms = self._clock.wall_ms()
        else:
            record = await self._unexpired(client_id)
            crashed = record is not None and (record.crashed or not record.ended_ms)
            ended_ms = 0 if record is None else self._ended_ms(record)
        resumed = None if clean or (record and not record.expiry_seconds) else record
        if record is not None and record.will is not None:
            due_ms = self._will_due_ms(replace(record, ended_ms=ended_ms))
            if resumed is None or due_ms <= self._clock.wall_ms():
                await self._publish_or_log(client_id, record.will)
        if resumed is None:
            await self._forget(client_id, record)
            return None
        return replace(resumed, will=None, crashed=crashed)

    async def owner_of(self, client_id: str) -> str | None:
        """Whose the session is, connected or not; None if there is none."""
        other = self.connected.get(client_id)
        if other is not None:
            return other.identity.name
        record = await self._unexpired(client_id)
        return record.owner if record is not None and record.expiry_seconds else None

    async def _unexpired(self, client_id: str) -> SessionRecord | None:
        """The record, unless it has expired; then its session ends now."""
        record = await self.records.read(client_id)
        if record is None or self.expires_ms(record) > self._clock.wall_ms():
            return record
        return replace(record, expiry_seconds=0)

    def enter(self, client_id: str, session: ConnectedSession) -> None:
        """The client is connected; the caller has its turn."""
        self.connected[client_id] = session
        self.connected_max = max(self.connected_max, len(self.connected))

    async def give_back(self, client_id: str, record: SessionRecord | None) -> None:
        """A client that has the turn of its id cannot connect: the session sleeps again."""
        await self._keep_or_forget(client_id, record)

    async def _forget(self, client_id: str, record: SessionRecord | None) -> None:
        """Delete the record, which is this one, if there is one; stored when this returns."""
        if record is not None:
            self.ended(client_id, (one.filter for one in record.subscriptions))
        await self.records.remove(client_id)

    # -- the end of a connection ------------------------------------------------------------------

    def leave_at_once(self, client_id: str, session: ConnectedSession) -> None:
        """A connection has ended that has no record and leaves none. Plain call."""
        if self.connected.get(client_id) is session:
            del self.connected[client_id]

    def leave_now(
        self, client_id: str, session: ConnectedSession, done: Callable[[], None]
    ) -> bool:
        """A connection has ended: write its session, unless something has to happen before that.
        Plain call; `done` is called when it is stored, or has failed.
        """
        if self.connected.get(client_id) is not session or client_id in self._turns:
            return False
        record = session.last_record_now() if self.records.stored.is_open else None
        if record is None or record.will is not None or not record.expiry_seconds:
            return False

        def stored(error: BrokerError | None) -> None:
            if error is not None:
                self._keep(client_id, error)
            done()

        del self.connected[client_id]
        record = replace(record, ended_ms=self._clock.wall_ms())
        self.records.put_asleep(client_id, record, stored)
        return True

    async def leave(self, client_id: str, session: ConnectedSession) -> None:
        """A connection has ended: store its session, or forget it."""
        async with self.turn_of(client_id):
            if self.connected.get(client_id) is not session:
                return  # another connection has taken it over, and its record
            record = await session.last_record()
            del self.connected[client_id]
            await self._keep_or_forget(client_id, record)

    async def _keep_or_forget(self, client_id: str, record: SessionRecord | None) -> None:
        """Nobody is connected: this is the session, or there is none."""
        try:
            if record is None:
                await self._forget(client_id, await self.records.read(client_id))
            else:
                await self._fall_asleep(client_id, record)
        except BrokerError as error:
            self._keep(client_id, error)

    def _keep(self, client_id: str, error: BrokerError) -> None:
        self._failed[client_id] = None
        log.warning("the session of %r is kept as it was last stored: %s", client_id, error)

    async def _fall_asleep(self, client_id: str, record: SessionRecord) -> None:
        record = replace(record, ended_ms=self._clock.wall_ms())
        if self._will_due_ms(record) <= record.ended_ms:
            assert record.will is not None
            if await self._is_settled(client_id, record.will):
                record = replace(record, will=None)
        if not record.expiry_seconds and record.will is None:
            await self._forget(client_id, record)
        else:
            await self.records.sleep(client_id, record)

    async def _is_settled(self, client_id: str, will: StoredWill) -> bool:
        """Publish a will; False if that has failed, and is to be tried again."""
        try:
            await self._publish_will(client_id, will)
        except PERMANENT as error:
            log.warning("the will of %r is not published: %s", client_id, error)
        except BrokerError as error:
            log.warning("the will of %r is not published yet: %s", client_id, error)
            return False
        return True

    async def _publish_or_log(self, client_id: str, will: StoredWill) -> None:
        try:
            await self._publish_will(client_id, will)
        except BrokerError as error:
            log.warning("the will of %r is not published: %s", client_id, error)

    async def stop(self) -> None:
        """The server stops: end all connections, and store their sessions. Wills are published
        after the next start (3.1.2.5 permits that).
        """
        waits: list[Completion[None]] = []
        for client_id, session in list(self.connected.items()):
            async with self.turn_of(client_id):
                if self.connected.get(client_id) is not session:
                    continue  # it has left meanwhile
                session.farewell()
                record = await session.last_record()
                del self.connected[client_id]
                if record is not None:
                    data = records.encode(replace(record, ended_ms=self._clock.wall_ms()))
                    waits.append(Completion())
                    self.records.put(client_id, data, waits[-1].done)
        for wait in waits:
            try:
                await wait.result()
            except BrokerError as error:
                log.warning("a session is kept as it was last stored: %s", error)

    # -- time -------------------------------------------------------------------------------------

    def _ended_ms(self, record: SessionRecord) -> int:
        """When the connection of a sleeping session ended."""
        return record.ended_ms or self._opened_ms

    def expires_ms(self, record: SessionRecord) -> int:
        """When a sleeping session expires."""
        if record.expiry_seconds == NEVER_EXPIRES:
            return NEVER_MS
        return self._ended_ms(record) + 1000 * record.expiry_seconds

    def _will_due_ms(self, record: SessionRecord) -> int:
        """When the will is published: after its delay, or when the session ends (3.1.3.2.2)."""
        if record.will is None:
            return NEVER_MS
        delayed_ms = self._ended_ms(record) + 1000 * record.will.delay_seconds
        return min(delayed_ms, self.expires_ms(record))

    def _due_ms(self, record: SessionRecord) -> int:
        return min(self._will_due_ms(record), self.expires_ms(record))

    async def run(self) -> None:
        """End sessions, and publish wills, when they are due; until cancelled."""
        while True:
            await trio.sleep(CHECK_SECONDS)
            while await self.end_due():
                await trio.lowlevel.checkpoint()

    async def end_due(self) -> bool:
        """End some sessions, and publish some wills, that are due; returns whether more may be."""
        now_ms = self._clock.wall_ms()
        try:
            due = await self.records.due(now_ms, DUE_PER_TURN)
        except BrokerError as error:
            log.warning("sessions that are due have to wait: %s", error)
            return False
        failed: Iterable[str] = ()
        if now_ms >= self._retry_ms:
            failed, self._failed = self._failed, {}
        for client_id in (*due, *failed):
            async with self.turn_of(client_id):
                if client_id not in self.connected:
                    await self._look_at(client_id, now_ms)
        return len(due) == DUE_PER_TURN

    async def _look_at(self, client_id: str, now_ms: int) -> None:
        """End a sleeping session, or publish its will, if that is due."""
        try:
            record = await self.records.read(client_id)
            if record is None:
                return
            if self._will_due_ms(record) <= now_ms:
                assert record.will is not None
                if not await self._is_settled(client_id, record.will):
                    self.records.postpone(client_id, now_ms + RETRY_MS)
                    return
                crashed = record.crashed or not record.ended_ms
                record = replace(
                    record, will=None, ended_ms=self._ended_ms(record), crashed=crashed
                )
                await self.records.sleep(client_id, record)
            if self.expires_ms(record) <= now_ms:
                await self._forget(client_id, record)
                self.expired += 1
            elif self.records.is_awake(client_id):
                await self.records.sleep(client_id, record)
        except BrokerError as error:
            self.records.postpone(client_id, now_ms + RETRY_MS)
            if self.records.is_awake(client_id):
                self._failed[client_id] = None
                self._retry_ms = now_ms + RETRY_MS
            log.warning("the session of %r has to end, later: %s", client_id, error)


def _ignore(_client_id: str, _filters: Iterable[str]) -> None:
    """There are no shared subscriptions."""


NEVER_MS: Final = 1 << 62
RETRY_MS: Final = 5_000
