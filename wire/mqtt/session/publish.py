"""Publishing: the PUBLISH packets of one connection, to the logs of their topics.

Consecutive packets to one log are one run, which is stored as one entry. A run is acknowledged when
it is stored; acknowledgements leave in the order of the packets [MQTT-4.6.0-2, -3].

    QoS 0   stored                                                  no acknowledgement
    QoS 1   stored                                                  PUBACK
    QoS 2   stored, then the identifier in the session's record     PUBREC
            PUBREL: the identifier leaves the record                PUBCOMP

A repeated packet identifier of QoS 2 is not published again until PUBREL, whatever its DUP flag
(4.3.3), also after a restart. The record names identifiers of stored messages only, and for each
log a mark: all messages before it are considered. So what was stored in the last moment before a
crash is found behind the marks, by its client id and packet identifier.

The retained messages of a run with QoS 2 are stored before its entry, as those of wills are, and
later entries of the connection wait for that one. So a message that is found behind a mark is also
retained; its repeat, a duplicate, would not retain it. Those of other runs are written together
with the entry: a repeat of QoS 1 is stored and retained anew.

Invariants: acknowledged messages are stored; a message of QoS 2 is stored once; entries are written
in the order of the packets [MQTT-4.6.0-6]; the client never has more unacknowledged messages than
Receive Maximum [MQTT-3.3.4-9].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.broker.connection_throttle import ConnectionThrottle
from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt import run as runs
from magnetar.core.kernel.errors import BrokerError, QuotaExceeded
from magnetar.core.ledger.log.appends import Appended
from magnetar.core.ledger.log.chain import Position
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES
from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.acknowledgements import pack_acknowledgements
from magnetar.wire.mqtt.codec.packets import PacketType, Version
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.codec.publishes import RETAIN, Publish, Publishes, count_of, one_by_one
from magnetar.wire.mqtt.errors import AWAY, FORBIDDEN, PacketError, reason_of
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.session.pending_run import PendingRun
from magnetar.wire.mqtt.session.received_aliases import ReceivedAliases, without_alias
from magnetar.wire.mqtt.session.unreleased import Unreleased
from magnetar.wire.mqtt.storage.retained import RetainedMessage

if TYPE_CHECKING:
    from magnetar.wire.mqtt.delivery.logs import MqttLog
    from magnetar.wire.mqtt.services import MqttServices
    from magnetar.wire.mqtt.session.client import ConnectedClient

V5: Final = Version.V5
QOS_1: Final = 2
QOS_2: Final = 4
"""The bits of the QoS in the flags of a PUBLISH."""
PUBACK: Final = 0x4002
PUBREC: Final = 0x5002
PUBCOMP: Final = 0x7002
"""Packets that succeed, up to the packet identifier."""


class Publisher:
    """Publishes for one connection. See the module's docstring."""

    __slots__ = (
        "_aliases",
        "_appends",
        "_client",
        "_drained",
        "_head",
        "_pending",
        "_pending_messages",
        "_services",
        "_throttle",
        "_unacknowledged",
        "unreleased",
    )

    def __init__(self, services: MqttServices, client: ConnectedClient) -> None:
        self._services = services
        self._client = client
        self.unreleased = Unreleased(services.unreleased_memory)
        self._unacknowledged = 0
        """Messages of QoS 1 that are being stored."""
        limit = services.options.topic_alias_maximum
        self._aliases = ReceivedAliases(services.alias_memory, limit)
        self._head = runs.head(
            client.client_id.encode(), has_properties=client.version == Version.V5
        )
        self._pending: deque[PendingRun] | None = None
        """None before the first run: most readers publish nothing."""
        self._pending_messages = 0
        self._appends: deque[tuple[PendingRun, Callable[[], None]]] | None = None
        """Runs whose entries wait for retained messages, or for such an entry; None before the
        first.
        """
        self._drained: trio.Event | None = None
        broker = services.broker
        self._throttle = ConnectionThrottle(
            broker.clock, broker.spawn, client.connection, client.is_here
        )

    # -- in -----------------------------------------------------------------------------------

    def publish(self, event: Publishes, at: int) -> int:
        """Publish packets from `at` on, unless the client has left; returns the place of the first
        one whose log has to be opened before (see `open_for`), or their number.
        """
        packets = event.packets
        if self._client.gone:  # its last record is made: nobody would know what is stored
            return len(packets)
        if len(packets) == 1:
            packet = packets[0]
            if not (packet.flags & ~QOS_1 or packet.properties):
                return self._publish_plain(event.data, packet)
        if not at and self._client.version == V5:
            self._aliases.resolve(packets)
        return self._publish_runs(event.data, packets, at)

    def _publish_runs(self, data: bytes, packets: Sequence[Publish], at: int) -> int:
        """Publish packets from `at` on, those of one log together; returns as `publish`."""
        logs, end = self._services.logs, len(packets)
        while at < end:
            topic = packets[at].topic
            log = logs.for_topic(topic)
            if log is None or not self._may_begin(log, packets[at]):
                return at
            refusal = self._refusal(packets[at], log)
            if refusal is not None:
                self.refuse(packets[at], refusal)
                at += 1
                continue
            stop = at + 1
            while stop < end:
                following = packets[stop].topic
                if following != topic and logs.for_topic(following) is not log:
                    break
                refusal = self._refusal(packets[stop], log)
                if refusal is not None:
                    break
                stop += 1
            self._store(log, data, packets[at:stop])
            at = stop
            if refusal is not None:
                self.refuse(packets[at], refusal)
                at += 1
        return at

    def _publish_plain(self, data: bytes, packet: Publish) -> int:
        """Publish packets of QoS 0 or 1 without anything else, which nearly all are: what the other
        way would find out about them is known. Returns how many of 1.
        """
        services, client = self._services, self._client
        log = services.logs.for_topic(packet.topic)
        if log is None:
            return 0
        refusal = client.publish_refusal(packet.topic, log)
        if refusal is not None:
            self.refuse(packet, refusal)
            return 1
        begin, end, ids = packet.begin, packet.end, packet.ids
        run = PendingRun(log, end - begin, packet.packets)
        if ids:
            run.ones = ids
            self._unacknowledged += len(ids)
            if client.version == V5:
                self._check_receive_maximum()
        self._begin(run)
        done = partial(self._plain_stored, run)
        if self._may_append(log, done):
            now_ms = services.broker.clock.wall_ms()
            entry = form.head(run.messages, now_ms) + self._head_in(log) + data[begin:end]
            self._append(run, entry, run.messages, now_ms, done)
        return 1

    async def open_for(self, packet: Publish) -> None:
        """Open the log of a packet, or load it; `BrokerError` if that fails. For a client that may
        not publish to it nothing is loaded or created.
        """
        self._services.check_may_publish(self._client.asker, packet.topic)
        log = await self._services.logs.open_for(packet.topic)
        if not self._may_begin(log, packet):
            await self._client.mark(log)
        if packet.retain:
            await self._services.retained.prepare()

    def refuse(self, packet: Publish, error: BrokerError) -> None:
        """Answer a packet that cannot be stored, as its log cannot be opened. That does not matter
        to one that is stored already.
        """
        run = PendingRun(None)
        run.error = error
        run.waits = 0
        if packet.flags & QOS_2:
            for number in packet.ids:
                if not self._is_duplicate(number):
                    run.twos.append(number)
        elif packet.flags & QOS_1:
            run.ones = packet.ids
            self._unacknowledged += len(packet.ids)
        self._await(run)
        self._acknowledge()

    def _may_begin(self, log: MqttLog, packet: Publish) -> bool:
        """Whether nothing has to be stored before the packet."""
        if packet.retain and not self._services.retained.is_open:
            return False
        return not packet.flags & QOS_2 or not self._client.lasts or self._client.is_marked(log)

    def _refusal(self, packet: Publish, log: MqttLog) -> BrokerError | None:
        """Why nothing of a packet may be stored: also if its message cannot be retained, since a
        client of 3.1.1 would send it again and again.
        """
        refusal = self._client.publish_refusal(packet.topic, log)
        if refusal is not None or not packet.flags & RETAIN or packet.end == packet.payload_at:
            return refusal
        if self._services.retained.is_full_for(packet.topic):
            return QuotaExceeded("no memory for more retained topics")
        return None

    def close(self) -> None:
        """The connection is closed: nothing is published any more."""
        self._aliases.close()
        self.unreleased.close()

    # -- storing ------------------------------------------------------------------------------

    def _store(self, log: MqttLog, data: bytes, packets: Sequence[Publish]) -> None:
        """Store one run."""
        messages = count_of(packets)
        run = PendingRun(log, packets[-1].end - packets[0].begin, messages)
        retained: list[Publish] = []
        kept = self._sorted(data, packets, run, retained)
        self._check_quota(run)
        self._begin(run)
        if not kept:
            self._stored(run, None)
            return
        done = partial(self._stored, run)
        if not self._may_append(log, done):
            return
        now_ms = self._services.broker.clock.wall_ms()
        count = messages if kept is packets else count_of(kept)
        pieces = form.head(count, now_ms), self._head_in(log), *self._pieces(data, kept, packets)
        run.waits += len(retained)
        self._append(run, b"".join(pieces), count, now_ms, done)
        for packet in retained:
            if run.error is None:
                self._retain(run, packet, data, now_ms)
            else:
                self._retained(run, run.error)

    def _begin(self, run: PendingRun) -> None:
        """A run is about to be stored."""
        connection = self._client.connection
        connection.storing(run.size)
        self._await(run)
        self._pending_messages += run.messages
        traffic = self._services.traffic
        traffic.publishes_received += run.messages
        traffic.publish_bytes_received += run.size
        if self._pending_messages >= self._services.options.pending_messages_max:
            connection.pause(PAUSE_PUBLISHES)

    def _may_append(self, log: MqttLog, done: Appended) -> bool:
        """Whether a log takes messages now; else `done` has the reason."""
        topic = log.topic
        assert topic is not None
        try:
            topic.check_producer()
        except BrokerError as error:
            done(error)
            return False
        return True

    def _append(
        self, run: PendingRun, entry: bytes, count: int, now_ms: int, done: Appended
    ) -> None:
        """Append an entry, after those that wait. One of QoS 2 waits for its retained messages:
        after a crash it is a duplicate, which retains nothing.
        """
        topic = None if run.log is None else run.log.topic
        assert topic is not None
        throttles = topic.throttles.publish
        if throttles:
            self._throttle.spend(throttles, count, len(entry))
        topic.last_used_ms = now_ms
        if not self._appends and (run.waits == 1 or not run.twos):
            topic.publish([entry], [count], done)
            return
        if self._appends is None:
            self._appends = deque()
        self._appends.append((run, partial(topic.publish, [entry], [count], done)))

    def _head_in(self, log: MqttLog) -> bytes:
        """The bytes before the packets of a run."""
        if not log.feed.publisher_prefix:
            return self._head
        client = self._client
        has_properties = client.version == Version.V5
        return runs.head(log.publisher(client.client_id), has_properties=has_properties)

    def _await(self, run: PendingRun) -> None:
        if self._pending is None:
            self._pending = deque()
        self._pending.append(run)

    def _sorted(
        self, data: bytes, packets: Sequence[Publish], run: PendingRun, retained: list[Publish]
    ) -> Sequence[Publish]:
        """Sort by QoS into the run; returns the packets to store, which are no duplicates."""
        kept: list[Publish] = []
        ones: list[int] = []
        is_changed = False
        for packet in packets:
            flags = packet.flags
            if flags & QOS_2:
                if not self.unreleased.are_new(packet.ids):
                    kept += self._without_duplicates(data, packet, run, retained)
                    is_changed = True
                    continue
                self.unreleased.begin(packet.ids)
                run.twos += packet.ids
            elif flags & QOS_1:
                ones += packet.ids
            if flags & RETAIN:
                retained.append(packet)
            kept.append(packet)
        run.ones = ones
        return kept if is_changed else packets

    def _without_duplicates(
        self, data: bytes, packet: Publish, run: PendingRun, retained: list[Publish]
    ) -> Iterator[Publish]:
        for one in one_by_one(data, packet):
            if self._is_duplicate(one.packet_id):
                continue
            run.twos.append(one.packet_id)
            if one.retain:
                retained.append(one)
            yield one

    def _is_duplicate(self, number: int) -> bool:
        """Whether a message of QoS 2 was sent before; if it is stored, answer it again."""
        if self.unreleased.is_storing(number):
            return True  # the answer to the first one comes
        if self.unreleased.is_stored(number):
            self._client.when_saved(
                partial(self._client.send, pack_acknowledgements(PUBREC, [number]))
            )
            return True
        self.unreleased.begin([number])
        return False

    def _check_quota(self, run: PendingRun) -> None:
        self._unacknowledged += len(run.ones)
        if self._client.version == V5:
            self._check_receive_maximum()
        if run.twos:
            self.unreleased.take_memory(run)

    def _check_receive_maximum(self) -> None:
        waiting = self._unacknowledged + self.unreleased.count
        if waiting > self._services.options.receive_maximum:
            raise PacketError(ReasonCode.RECEIVE_MAXIMUM_EXCEEDED, f"{waiting} in flight")

    def waits_to_store_in(self, log: MqttLog) -> bool:
        """Whether a message of QoS 2 is on its way to a log, and not known to be stored yet."""
        return any(run.log is log and run.twos for run in self._pending or ())

    def _pieces(
        self, data: bytes, kept: Sequence[Publish], packets: Sequence[Publish]
    ) -> Sequence[bytes]:
        """The packets as they are stored: as sent, but without aliases."""
        if kept is packets:
            for one in packets:
                if one.properties and Property.TOPIC_ALIAS in one.properties:
                    break
            else:
                return (data[packets[0].begin : packets[-1].end],)
        pieces = []
        for one in kept:
            if one.properties and Property.TOPIC_ALIAS in one.properties:
                topic = one.topic.encode()
                properties = without_alias(data[one.begin : one.end])
                payload = data[one.payload_at : one.end]
                first = runs.PUBLISH | one.flags
                pieces.append(runs.packet(first, topic, properties, payload, one.packet_id))
            else:
                pieces.append(data[one.begin : one.end])
        return pieces

    def _retain(self, run: PendingRun, packet: Publish, data: bytes, now_ms: int) -> None:
        properties = b""
        if packet.properties:
            properties = without_alias(data[packet.begin : packet.end])
        payload = data[packet.payload_at : packet.end]
        topic, client_id = packet.topic, self._client.client_id
        message = RetainedMessage(client_id, topic, payload, packet.qos, properties)
        done = partial(self._retained, run)
        write = self._services.retained.put(message, now_ms, done)
        if run.is_logged:
            self._services.retained.logged(write)
        else:
            run.retained = (*run.retained, write)

    def _retained(self, run: PendingRun, result: Position | BrokerError) -> None:
        """One retained message of a run is stored, or has failed."""
        run.waits -= 1
        if isinstance(result, BrokerError):
            run.error = run.error or result
        if not run.waits:  # its entry is stored
            self._end(run)
        appends = self._appends
        while appends and appends[0][0].waits == 1:
            first, append = appends.popleft()
            if first.error is None:
                append()
            else:
                self._stored(first, first.error)  # it is sent again: nobody receives it twice

    @property
    def is_drained(self) -> bool:
        """Whether everything that was published is stored, or has failed."""
        return not self._pending

    async def drained(self) -> None:
        """Wait until everything that was published is stored, or has failed."""
        if not self.is_drained:
            self._drained = trio.Event()
            await self._drained.wait()

    # -- acknowledgements ---------------------------------------------------------------------

    def _stored(self, run: PendingRun, result: Position | BrokerError | None) -> None:
        """The entry of a run is stored or has failed; None if there is none."""
        run.waits -= 1
        run.is_logged = True
        for write in run.retained:
            self._services.retained.logged(write)
        if isinstance(result, BrokerError):
            run.error = result
        else:
            run.position = result
        if not run.waits:
            self._end(run)

    def _end(self, run: PendingRun) -> None:
        """All writes of a run have ended."""
        self._pending_messages -= run.messages
        self._client.connection.stored(run.size)
        self._acknowledge()

    def _plain_stored(self, run: PendingRun, result: Position | BrokerError) -> None:
        """As `_stored`, of a run of QoS 0 or 1."""
        pending = self._pending
        assert pending
        if isinstance(result, BrokerError) or pending[0] is not run or self._drained is not None:
            self._stored(run, result)
            return
        pending.popleft()
        self._pending_messages -= run.messages
        connection = self._client.connection
        connection.stored(run.size)
        if run.ones:
            self._unacknowledged -= len(run.ones)
            self._client.send(pack_acknowledgements(PUBACK, run.ones), len(run.ones))
        if pending or connection.paused:
            self._acknowledge()

    def _acknowledge(self) -> None:
        """Acknowledge the runs that are stored, as far as all before them are."""
        pending = self._pending
        while pending and not pending[0].waits:
            run = pending.popleft()
            self._unacknowledged -= len(run.ones)
            if run.error is not None:
                self._fail(run, run.error)
                continue
            if run.ones:
                self._client.send(pack_acknowledgements(PUBACK, run.ones), len(run.ones))
            if run.twos:
                self.unreleased.are_stored(run.twos)
                if run.log is not None and run.position is not None:
                    self._client.set_mark(run.log, run.position)
                answer = partial(
                    self._client.send, pack_acknowledgements(PUBREC, run.twos), len(run.twos)
                )
                self._client.when_saved(answer)
        if not pending and self._drained is not None:
            self._drained.set()
        connection = self._client.connection
        if (
            connection.paused & PAUSE_PUBLISHES
            and 2 * self._pending_messages <= self._services.options.pending_messages_max
        ):
            connection.resume(PAUSE_PUBLISHES)

    def _fail(self, run: PendingRun, error: BrokerError) -> None:
        """Refuse a run: with reasons in 5.0; before that, and while its topic is away, by the end
        of the connection, after which the client sends its messages again. It may not send them
        forever: before 5.0 what nobody may publish is acknowledged, and dropped [MQTT-3.3.5-2].
        """
        client = self._client
        self.unreleased.have_failed(run)
        client.connection.complain("publishes refused", str(error))
        reason = reason_of(error)
        if client.version != Version.V5 and reason in FORBIDDEN:
            for answer, ids in ((PUBACK, run.ones), (PUBREC, run.twos)):
                if ids:
                    client.send(pack_acknowledgements(answer, ids), len(ids))
            return
        if client.version != Version.V5 or isinstance(error, AWAY):
            if run.ones or run.twos:
                client.end(str(error), ReasonCode.SERVER_BUSY)
            return
        for kind, ids in ((PacketType.PUBACK, run.ones), (PacketType.PUBREC, run.twos)):
            for number in ids:
                encoded = partial(encode.acknowledgement, client.version, kind, number, reason)
                client.answer(encoded, str(error))

    def released(self, ids: Sequence[int]) -> None:
        """Answer PUBREL."""
        client = self._client
        known = self.unreleased.release(ids)
        if known:
            client.when_saved(
                partial(client.send, pack_acknowledgements(PUBCOMP, known), len(known))
            )
        if len(known) == len(ids):
            return
        kind, reason = PacketType.PUBCOMP, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
        for number in set(ids).difference(known):
            client.send(encode.acknowledgement(client.version, kind, number, reason))
