"""A connected client: what its publisher, its subscriber and its session share.

    connected   from CONNACK on
    gone        the connection is closed, or another one has the client id

A client **lasts** if its session is kept after the connection. Then everything that the protocol
promises across connections is stored in its record before it is acknowledged (`when_saved`).
Acknowledgements of QoS 1 are stored a moment later: after a crash, their messages are sent again.

Invariant: nothing is sent or stored for a client that is gone, except its last record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, InvalidName, Unauthorized
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.wire.mqtt.clients import record as records
from magnetar.wire.mqtt.clients.record import (
    SessionProgress,
    SessionRecord,
    StoredInFlight,
    StoredPlace,
    StoredSubscription,
    StoredWill,
)
from magnetar.wire.mqtt.clients.saver import Saver
from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.packets import Version
from magnetar.wire.mqtt.codec.properties import NO_PROPERTIES, Properties, Property
from magnetar.wire.mqtt.delivery.feed import MessagePlace
from magnetar.wire.mqtt.delivery.lagging_reader import NOWHERE
from magnetar.wire.mqtt.delivery.matcher import TopicSubscription
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.rights.topic_rights import Asker
from magnetar.wire.mqtt.topics import CACHED_BYTES_MAX, SHARE, matches

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection
    from magnetar.wire.mqtt.delivery.logs import MqttLog
    from magnetar.wire.mqtt.services import MqttServices
    from magnetar.wire.mqtt.session.publish import Publisher
    from magnetar.wire.mqtt.wire import MqttWire

REASON_CHARACTERS_MAX: Final = 200
FORMER: Final = ""
"""In place of a filter: logs of former rules, in which the session still has a place."""
PERMITTED_MAX: Final = 8
"""Topics of a client that are known to be allowed: there may be many clients."""


class ConnectedClient:
    """See the module's docstring."""

    __deletable__ = ("publisher",)
    __slots__ = (
        "_last",
        "_marks",
        "_permitted",
        "_read",
        "_saver",
        "_services",
        "client_id",
        "connected_ms",
        "connection",
        "dirty",
        "expiry_seconds",
        "feeds",
        "gone",
        "identity",
        "keep_alive",
        "lasts",
        "publisher",
        "subscriber",
        "version",
        "wants_problems",
        "will",
        "will_bytes",
        "window_bytes",
        "wire",
    )

    publisher: Publisher
    subscriber: Subscriber

    def __init__(
        self, services: MqttServices, connection: Connection, wire: MqttWire, client_id: str
    ) -> None:
        self._services = services
        self.connection = connection
        self.wire = wire
        self.client_id = client_id
        self.version = wire.version
        self.identity: Identity = ANYBODY
        self.gone = False
        self.lasts = False
        self.connected_ms = services.broker.clock.wall_ms()
        self.keep_alive = 0
        """In seconds; 0 for none."""
        self.expiry_seconds = 0
        self.will: StoredWill | None = None
        self.will_bytes = self.window_bytes = 0
        """Taken from the memory of all clients' wills and long ids, and of their windows."""
        self.wants_problems = True
        """Whether reason strings and user properties may be sent in all packets (3.1.2.11.7)."""
        self.feeds: dict[str, list[MqttLog]] = {}
        """The logs that each of its filters reads."""
        self.dirty = False
        """Whether its record is to be stored soon."""
        self._marks: dict[MqttLog, MessagePlace] = {}
        self._last: SessionRecord | None = None
        self._permitted: dict[str, tuple[int, TopicName, Identity]] | None = None
        """The topics that it may publish to, with what that was found for; None for a reader."""
        self._read: dict[MqttLog, bool] | None = None
        """See `_logs`; None if that is to be found out again."""
        self._saver = Saver(self._store, self._failed)

    def is_here(self, _now: float) -> bool:
        return not self.gone

    # -- what it may do -----------------------------------------------------------------------

    def rights_changed(self) -> None:
        """End the connection if the client reads what it may read no longer. Each PUBLISH is looked
        at when it comes.
        """
        for filter in self.subscriber.subscriptions.by_filter:
            if not self.may_read(filter, self._read_by(filter)):
                return

    def may_read(self, filter: str, names: Sequence[TopicName]) -> bool:
        """Whether it may read what a filter matches in these stored topics; if not, the connection
        ends.
        """
        refusal = self.read_refusal(filter, names)
        if refusal is not None:
            self.end(str(refusal), ReasonCode.NOT_AUTHORIZED)
        return refusal is None

    def may_read_topic(self, topic: str) -> bool:
        """Whether it may read a retained message. Plain call, for each."""
        services = self._services
        if not services.rights.generation:
            return True
        try:
            name = services.logs.rules.topic_for(topic)
        except InvalidName:
            return False  # a topic of former rules, which nobody can name now
        return self.read_refusal(topic, (name,)) is None

    def _read_by(self, filter: str) -> Sequence[TopicName]:
        """The names of the logs that a filter reads, for this client or its group."""
        if filter.startswith(SHARE):
            return self._services.groups.read_by(filter)
        return [log.name for log in self.feeds.get(filter, ())]

    @property
    def asker(self) -> Asker:
        return Asker(self.identity, self.client_id, self.connection.host)

    def read_refusal(self, filter: str, names: Iterable[TopicName]) -> Unauthorized | None:
        """Why it may not read what a filter matches in these stored topics; None if it may."""
        return self._services.rights.read_refusal(self.asker, filter, names)

    def publish_refusal(self, topic: str, log: MqttLog) -> Unauthorized | None:
        """Why it may not publish to an MQTT topic; None if it may. Plain call, for each PUBLISH: a
        device publishes to the same few topics.
        """
        rights = self._services.rights
        generation = rights.generation
        if not generation:
            return None
        if self._permitted is None or len(self._permitted) > PERMITTED_MAX:
            self._permitted = {}
        known = self._permitted.get(topic)
        if known is not None and known == (generation, log.name, self.identity):
            return None
        refusal = rights.publish_refusal(self.asker, topic, log.name)
        if refusal is None and len(topic) <= CACHED_BYTES_MAX:
            self._permitted[topic] = generation, log.name, self.identity
        return refusal

    def expired(self) -> None:
        """End the connection: the proof of its identity has expired."""
        self.end("the proof of your identity has expired", ReasonCode.NOT_AUTHORIZED)

    # -- the connection -----------------------------------------------------------------------

    def send(self, packet: bytes, count: int = 1) -> None:
        """Have an encoded packet sent, or several as one piece."""
        if not self.gone:
            self.wire.pack((packet,))
            if count > 1:
                self._services.traffic.packets_sent += count - 1  # the wire counts pieces
            self.connection.touch()

    def end(self, why: str, reason: ReasonCode = ReasonCode.UNSPECIFIED_ERROR) -> None:
        """Close the connection, in 5.0 with DISCONNECT."""
        self._say_why(reason, why)
        self.connection.end(why)

    def _say_why(self, reason: ReasonCode, why: str = "") -> None:
        """Send DISCONNECT as the last packet [MQTT-3.14.4-1], in 5.0 and after CONNACK."""
        if self.version == Version.V5 and self.wire.answered:
            self.answer(partial(encode.disconnect, reason), why)
        self.wire.close()

    def answer(self, encoded: Callable[[Properties], bytes], problem: str = "") -> None:
        """Have a packet sent with a reason string, if the client wants one and it is not too large
        then [MQTT-3.1.2-24]. No packet without names, filters or strings is larger than CONNACK.
        """
        size_max = self.subscriber.packet_bytes_max
        packet = encoded(self.problem(problem))
        if len(packet) > size_max:
            packet = encoded(NO_PROPERTIES)
        if len(packet) > size_max:
            self.end("an answer is larger than the client accepts", ReasonCode.PACKET_TOO_LARGE)
        else:
            self.send(packet)

    def problem(self, text: str) -> Properties:
        """The reason string, if the client wants it."""
        if self.version != Version.V5 or not self.wants_problems or not text:
            return NO_PROPERTIES
        return {Property.REASON_STRING: text[:REASON_CHARACTERS_MAX]}

    # -- the record ---------------------------------------------------------------------------

    def changed(self) -> None:
        """Something has changed that may be stored a moment later."""
        if self.lasts and not self.dirty:
            self.dirty = True
            self._services.dirty_clients.append(self)

    def when_saved(self, call: Callable[[], None]) -> None:
        """Call when everything up to now is stored; at once for a client that does not last."""
        if self.gone:
            return
        if self.lasts:
            self._saver.when_saved(call)
        else:
            call()

    async def saved(self) -> None:
        """Wait until the record is stored; raises if that fails. For one that is gone, its last
        record counts.
        """
        if self.gone:
            return
        waiting = Completion[None]()
        self._store(waiting.done)
        await waiting.result()

    def save_if_dirty(self) -> None:
        """Store the record, if it has changed and the client is still here."""
        if self.dirty and not self.gone:
            self.dirty = False
            self._saver.when_saved(_nothing)

    def _store(self, done: Callable[[BrokerError | None], None]) -> None:
        """Store the session as it is now: whole, if much of its subscriptions has changed."""
        stored, subscriptions = self._services.sessions.records, self.subscriber.subscriptions
        if subscriptions.changed is not None:
            stored.put_progress(self.client_id, records.encode_progress(self._progress()), done)
            return
        encoded = records.encode(self.record())
        subscriptions.stored_whole()
        stored.put(self.client_id, encoded, partial(self._is_stored, done))

    def _is_stored(
        self, done: Callable[[BrokerError | None], None], error: BrokerError | None
    ) -> None:
        """The whole session is stored, or is to be stored again."""
        if error is not None:
            self.subscriber.subscriptions.not_stored()
        done(error)

    def _failed(self, error: BrokerError) -> None:
        self.end(f"the session cannot be stored: {error}")

    def record(self) -> SessionRecord:
        """The session as it is now."""
        progress = self._progress()
        return SessionRecord(
            expiry_seconds=self.expiry_seconds,
            subscriptions=tuple(map(_stored, self.subscriber.subscriptions.by_filter.values())),
            places=progress.places,
            in_flight=progress.in_flight,
            received=progress.received,
            will=self.will,
            marks=progress.marks,
            doubts=progress.doubts,
            owner=self.identity.name,
        )

    def _progress(self) -> SessionProgress:
        subscriber = self.subscriber
        places, logs = self._places()
        in_flight = [
            StoredInFlight(
                number,
                logs[found.message.source.full_name],
                *found.message.place.position,
                found.message.place.place,
                found.qos,
                found.released,
            )
            for number, found in subscriber.ids
        ]
        return SessionProgress(
            places=tuple(places),
            in_flight=tuple(in_flight),
            received=tuple(self.publisher.unreleased.stored.all()),
            marks=tuple(StoredPlace(log.name.full, *self._mark_in(log), 0) for log in self._marks),
            doubts=tuple(
                StoredPlace(feed.full_name, *before, 0) for feed, before in subscriber.doubts()
            ),
            changed=tuple(
                (filter, None if one is None else _stored(one))
                for filter, one in subscriber.subscriptions.changes()
            ),
        )

    def _places(self) -> tuple[Sequence[StoredPlace], dict[str, int]]:
        """The places in all logs that it reads, and in those from which messages are in flight;
        and the number of each log among them. A log that only filters of QoS 0 read has the place
        `NOWHERE`: nothing of it is caught up with, so a sleeping session must not hold it.
        """
        found: dict[str, MessagePlace] = {}
        for log, is_needed in self._logs().items():
            found[log.name.full] = self.subscriber.place_in(log.feed) if is_needed else NOWHERE
        for _, each in self.subscriber.ids:
            found.setdefault(each.message.source.full_name, NOWHERE)
        places = [StoredPlace(name, *at.position, at.place) for name, at in found.items()]
        return places, {name: number for number, name in enumerate(found)}

    def _logs(self) -> dict[MqttLog, bool]:
        """The logs that it reads, and whether a filter of QoS 1 or 2 does. Looking at each filter
        again for each acknowledgement would cost a session of 10,000 several ms.
        """
        if self._read is not None:
            return self._read
        found: dict[MqttLog, bool] = {}
        subscriptions = self.subscriber.subscriptions.by_filter
        for filter, logs in self.feeds.items():
            subscription = subscriptions.get(filter)
            for log in logs:
                if subscription is None or subscription.qos:
                    found[log] = True
                else:
                    found.setdefault(log, False)
        self._read = found
        return found

    def join(self, filter: str, logs: list[MqttLog], *, whole: bool = False) -> None:
        """Read the logs of a filter, besides those that it reads already; see `services.py`. Of
        those that come later (partitions, rules), only what the client may read.
        """
        logs = [log for log in logs if self.read_refusal(filter, [log.name]) is None]
        self._services.join(self.subscriber, self.feeds, filter, logs, whole=whole)
        self.logs_changed()

    def leave_logs(self, filter: str) -> None:
        """Stop reading the logs that only this filter needs."""
        self._services.leave(self.subscriber, self.feeds, filter)
        self.logs_changed()

    def logs_changed(self) -> None:
        """Its subscriptions or `feeds` have changed."""
        self._read = None

    # -- QoS 2 --------------------------------------------------------------------------------

    def is_marked(self, log: MqttLog) -> bool:
        """Whether the record says from where on this client publishes to the log with QoS 2."""
        return log in self._marks

    async def mark(self, log: MqttLog) -> None:
        """Store where the log ends now, before the first message of QoS 2."""
        if self.lasts and log not in self._marks:
            self._marks[log] = MessagePlace(log.feed.end, 0)
            try:
                await self.saved()
            except BaseException:
                del self._marks[log]
                raise

    def _mark_in(self, log: MqttLog) -> Position:
        """Up to where `received` covers a log: all of it, unless messages are on their way there.
        So the mark of a client that publishes no more does not hold the log back.
        """
        if log.feed.is_attached and not self.publisher.waits_to_store_in(log):
            self._marks[log] = MessagePlace(log.feed.end, 0)
        return self._marks[log].position

    def set_mark(self, log: MqttLog, position: Position) -> None:
        """`received` covers the messages of QoS 2 up to that entry of the log."""
        if log in self._marks:
            self._marks[log] = MessagePlace((position[0], position[1] + 1), 0)

    # -- the end ------------------------------------------------------------------------------

    def farewell(self) -> None:
        """The server stops: tell the client."""
        self._say_why(ReasonCode.SERVER_SHUTTING_DOWN)

    def positions(self) -> Iterator[tuple[str, Position]]:
        """The positions that it needs, by log."""
        for logs in self.feeds.values():
            for log in logs:
                yield log.name.full, self.subscriber.place_in(log.feed).position
        for _, found in self.subscriber.ids:
            yield found.message.source.full_name, found.message.place.position

    async def read_new_logs(self, *, whole: bool = False) -> None:
        """Read logs that have come since: of new rules, or new partitions of its topics."""
        before = {log for logs in self.feeds.values() for log in logs}
        for filter in list(self.feeds):
            subscription = self.subscriber.subscriptions.by_filter.get(filter)
            if subscription is None:
                continue
            for log in await self._services.logs.sources_of(filter, is_granted=True):
                begins = whole or self._services.logs.is_single(log)
                if subscription.qos:
                    await self._services.hold.keep(log, whole=begins)
                if not self.gone and filter in self.feeds:
                    self.join(filter, [log], whole=begins)
        after = {log for logs in self.feeds.values() for log in logs}
        if self.lasts and not self.gone and after - before:
            await self.saved()

    async def read_single(self, log: MqttLog, topic: str) -> None:
        """Read the log of one MQTT topic, which is new, from its beginning."""
        for filter in list(self.feeds):
            subscription = self.subscriber.subscriptions.by_filter.get(filter)
            if subscription is None or not matches(filter, topic):
                continue
            if not self._services.logs.may_serve(log, filter):
                continue
            if subscription.qos:
                await self._services.hold.keep(log, whole=True)
            if not self.gone and filter in self.feeds:
                self.join(filter, [log], whole=True)
        self.changed()

    def leave(self) -> None:
        """The client is gone: end its subscriptions, and note its last record."""
        if self.gone:
            return
        filters = self.subscriber.subscriptions.by_filter
        shared = [each for each in filters if each.startswith(SHARE)]
        for filter in shared:
            self._services.groups.leave(self.subscriber, filter, lasts=self.lasts)
        if not self.lasts:
            self._services.groups.ended(self.client_id, shared)
        if self.lasts or self.will is not None:
            self._last = self.record()
        self.gone = True
        self._services.broker.access.live.remove(self)
        self.give_back_memory()
        self.publisher.close()
        self.subscriber.close()
        self._saver.stop()
        self._services.unsubscribe_all(self.subscriber, self.feeds)

    def give_back_memory(self) -> None:
        """The memory of its will and its window is free, once it is gone or is not let in."""
        self._services.will_memory.give_back(self.will_bytes)
        self._services.window_memory.give_back(self.window_bytes)
        self.will_bytes = self.window_bytes = 0

    async def last_record(self) -> SessionRecord | None:
        """The record that it leaves, once its publishes are stored; None if it needs none."""
        self.leave()
        await self.publisher.drained()
        return self.last_record_now()

    def last_record_now(self) -> SessionRecord | None:
        """The same as a plain call; None also if a publish is not stored yet."""
        self.leave()
        if self._last is None or not self.publisher.is_drained:
            return None
        return replace(self._last, received=tuple(self.publisher.unreleased.stored.all()), marks=())

    def release(self) -> None:
        """Nobody uses it any more: it is part of no reference cycle from now on, so that it is not
        kept until the garbage collector looks at old objects, which is rare.
        """
        with suppress(AttributeError):  # both the end and another connection may do that
            del self.publisher

    async def displace(self) -> SessionRecord | None:
        """Another connection has the client id (3.1.4): see `ConnectedSession`."""
        self._say_why(ReasonCode.SESSION_TAKEN_OVER)
        self.leave()
        self.connection.end("another connection has the same client id")
        record = await self.last_record()
        self.release()
        return record


def _stored(one: TopicSubscription) -> StoredSubscription:
    return StoredSubscription(
        one.filter, one.qos, one.no_local, one.retain_as_published, one.identifier
    )


def _nothing() -> None:
    """Nobody waits."""
