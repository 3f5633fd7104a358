"""The delivery of messages to one connected client.

A subscriber packs PUBLISH packets while the client's window (Receive Maximum) and its connection
have room. Without room it lags (`lagging_reader.py`), and catches up when half of the window is
free. Messages in flight are not kept in memory: they are read from the log by their place if they
have to be sent again.

The subscriber of a session that outlives its connection, or did, is durable. Its packet identifiers
follow from the messages' indexes, so that a message has the same identifier after a crash, although
nothing is stored when it is sent. Those of each log begin elsewhere, as messages of several logs
have equal indexes; an identifier in use by another message delays the next one. After a crash,
nobody knows what was sent last, so DUP is set in all messages that were stored before ("might be
re-delivery of an earlier attempt", 3.3.1.1).

Retained messages have no such index, and who resumes a session is not sent them anew. A client that
has received one with QoS 2 drops whatever comes with its identifier until PUBREL, so a durable
subscriber has the identifier recorded before it sends one. Other messages of QoS 1 and 2 wait
meanwhile, so that a newer message of its topic does not overtake it.

    held        CONNACK is not sent yet: its state is restored, and nothing is sent
    resending   messages in flight are sent again, in order and with DUP [MQTT-4.4.0-1]
    catching up messages that were stored since are sent
    live        messages are sent as the feeds offer them

Invariants: messages of QoS 1 and 2 are sent in their stored order [MQTT-4.6.0-5], and no more of
them are in flight than the window allows [MQTT-3.3.4-9]; a packet that is too large for the client
counts as delivered [MQTT-3.1.2-25].
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from magnetar.core.entry.mqtt.properties import expires_at
from magnetar.core.entry.mqtt.segments import behind, renumbered
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.mqtt.codec.fields import u16
from magnetar.wire.mqtt.delivery.feed import RETRY_SECONDS, Feed, MessagePlace
from magnetar.wire.mqtt.delivery.lagging_reader import NOWHERE, LaggingReader
from magnetar.wire.mqtt.delivery.matcher import Grant, TopicSubscription
from magnetar.wire.mqtt.delivery.outgoing_publish import Addressee, first_byte, packed
from magnetar.wire.mqtt.delivery.packet_ids import PACKET_ID_MAX, InFlight, PacketIds
from magnetar.wire.mqtt.delivery.sent_messages import (
    MessageSource,
    Resumed,
    Sent,
    SentTogether,
    SharingGroup,
)
from magnetar.wire.mqtt.delivery.session_subscriptions import SessionSubscriptions
from magnetar.wire.mqtt.delivery.topic_aliases import NO_ALIAS, TopicAliases

if TYPE_CHECKING:
    from magnetar.core.entry.mqtt.run import PublishRun, StoredPublish
    from magnetar.core.entry.mqtt.segments import PublishSegment
    from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage, Messages

log = logging.getLogger(__name__)

PUBREL: Final = b"\x62\x02"
"""The fixed header of a PUBREL without reason and properties."""
NO_LIMIT: Final = 268_435_460
"""The size of the largest possible packet."""


class Outlet(Protocol):
    """The connection as a subscriber uses it."""

    @property
    def congested(self) -> bool:
        """Whether it accepts no more now; its session is notified when it does."""
        ...

    def send(self, pieces: Sequence[bytes], packets: int) -> None:
        """Send so many packets, which are these pieces."""
        ...

    def dropped(self, packets: int) -> None:
        """Messages are not sent."""
        ...


class Cut(NamedTuple):
    """A SUBSCRIBE, and what came before it (`storage/retained.py`)."""

    begun: int
    """Writes of retained messages that had begun."""
    logged: int
    """Messages with RETAIN that were in their logs."""
    read: Sequence[tuple[Feed, Position]]
    """The logs that the client read already, and their last entries."""


class Subscriber(LaggingReader):
    """See the module's docstring."""

    __slots__ = (
        "_clock",
        "_congested",
        "_doubtful",
        "_durable",
        "_held",
        "_outlet",
        "_packed",
        "_packed_count",
        "_recording",
        "_resending",
        "_resends",
        "_room",
        "_window",
        "addressee",
        "aliases",
        "dropped",
        "gone",
        "groups",
        "ids",
        "packet_bytes_max",
        "replays",
        "sent",
        "subscriptions",
        "when_saved",
    )

    def __init__(
        self,
        client_id: bytes,
        outlet: Outlet,
        window: int,
        clock: Clock,
        spawn: Callable[..., None],
        *,
        durable: bool = False,
    ) -> None:
        super().__init__(client_id, spawn)
        self.addressee = Addressee(has_properties=False)
        self.packet_bytes_max = NO_LIMIT
        self.aliases: TopicAliases | None = None
        """None for a client that accepts none [MQTT-3.1.2-27]."""
        self.subscriptions = SessionSubscriptions()
        self.ids: PacketIds[Sent] = PacketIds(window)
        self.dropped = 0
        """The number of messages of QoS 0 without room, and of packets that were too large."""
        self.sent = 0
        """The number of packets with messages, and of PUBREL that were sent again."""
        self.groups: list[SharingGroup] = []
        """The groups of its shared subscriptions."""
        self.replays: dict[str, tuple[TopicSubscription, Cut, Callable[[str], bool]]] = {}
        """Subscriptions whose retained messages are due, the first of which is being served."""
        self.gone = False
        """Its connection is closed: nothing more is sent."""
        self.when_saved: Callable[[Callable[[], None]], None] = at_once
        """Calls when the session is stored as it is now. The client gives it; `close` drops it."""
        self._durable = durable
        self._outlet = outlet
        self._clock = clock
        self._resending: list[int] = []
        """Packet identifiers of messages in flight that this connection has not sent yet, the
        first one last."""
        self._resends = False
        """A task does that."""
        self._doubtful: dict[Feed, Position] = {}
        """Messages before these positions may have been sent before a crash."""
        self._packed: list[bytes] = []
        self._packed_count = 0
        """Packets in them."""
        self._congested = self._held = False
        self._room: trio.lowlevel.ParkingLot | None = None
        """Replays of retained messages that wait for room; None for none."""
        self._recording = 0
        """Retained messages whose identifiers are being recorded; the window is closed then."""
        self._window = window
        """The window that opens again after that."""

    # -- a session that continues -----------------------------------------------------------------

    def hold(self) -> None:
        """Send nothing until `start`: messages that are offered meanwhile are caught up with."""
        self._held = self._congested = True

    def start(self) -> None:
        """CONNACK is sent: send again what is in flight, then catch up."""
        self._held = self._congested = False
        self.has_room()

    def restore(
        self,
        places: Mapping[Feed, MessagePlace],
        in_flight: Sequence[Resumed],
        doubts: Mapping[Feed, Position],
    ) -> None:
        """Restore a session: what is in flight, the places to catch up from, and up to where
        messages may have been sent before a crash. `start` follows, so that a record that is stored
        in between has the whole state.
        """
        assert self._held
        for one in in_flight:
            self.ids.resume(one.packet_id, one.sent, one.qos, released=one.released)
        self._resending.extend(one.packet_id for one in reversed(in_flight))
        behind = {feed: place for feed, place in places.items() if place != NOWHERE}
        self._lagging.update(behind)  # of the others, it only gets messages of QoS 0
        self._doubtful = dict(doubts)

    def doubts(self) -> Iterator[tuple[Feed, Position]]:
        """Up to where messages that are still to be sent may have been sent before a crash."""
        for feed, before in self._doubtful.items():
            if self.place_in(feed).position < before:
                yield feed, before

    async def _resend(self) -> None:
        """Send messages in flight again, as far as the window goes."""
        try:
            await trio.lowlevel.checkpoint()
            while self._resending and not self.gone and self._may_resend:
                number = self._resending[-1]
                found = self.ids.get(number)
                if found is not None and not await self._sent_again(number, found):
                    continue
                self._resending.pop()
                self.flush()
        finally:
            self._resends = False
        if not self._resending:
            self.has_room()

    @property
    def _may_resend(self) -> bool:
        return len(self.ids) - len(self._resending) < self.ids.window and not self._congested

    async def _sent_again(self, number: int, found: InFlight[Sent]) -> bool:
        """Pack one message in flight again; False if reading failed and is to be repeated."""
        if found.released:
            self._packed.append(PUBREL + u16(number))
            self._packed_count += 1
            return True
        source, place = found.message.source, found.message.place
        try:
            messages = await source.message_at(place.position)
        except BrokerError as error:
            log.warning("%s: cannot read at %s: %s", source.full_name, place.position, error)
            await trio.sleep(RETRY_SECONDS)
            return False
        for packet in messages.packets:
            if packet.place == place.place:
                grant = self.grant_of(packet.topic, own=False) or Grant(found.qos, False, ())
                if source.replays:
                    grant = grant._replace(retain_as_published=True)
                if self._pack(packet, messages.published_ms, grant, found.qos, number, dup=True):
                    return True
        if self.ids.get(number) == found:
            self._give_up(number, found.qos)
        return True

    def _give_up(self, number: int, qos: int) -> None:
        """A message in flight is too large for this connection, or no longer stored. With QoS 2,
        its receiver may have it, and drops what comes with its identifier until PUBREL. It answers
        that whether it knows the identifier or not (4.3.3), so the exchange goes on as if PUBREC
        had come.
        """
        if qos == 2:
            self.ids.received(number)
            self.when_saved(partial(self.release, [number]))
        else:
            self.ids.forget(number)

    # -- sending ----------------------------------------------------------------------------------

    def offer(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        segment: PublishSegment,
        grant: Grant,
    ) -> None:
        """Accept messages of a feed, as far as there is room; `flush` follows."""
        if not (segment.qos and grant.qos):
            self._offer_unconfirmed(messages, segment, grant)
        elif not self.is_lagging(feed):
            sent = self.send_segment(feed, position, messages, segment, 0, grant)
            if sent < segment.packets:
                self.lag(feed, MessagePlace(position, messages.places_of(segment)[sent]))

    def _offer_unconfirmed(self, messages: Messages, segment: PublishSegment, grant: Grant) -> None:
        run = messages.run
        if self._congested:
            self._drop(segment.packets)
        elif run is not None and self._takes_as_stored(run, segment, grant):
            self._packed.append(run.data[segment.begin : segment.end])
            self._packed_count += segment.packets
        else:
            for packet in messages.packets_of(segment):
                self._pack(packet, messages.published_ms, grant, 0, 0)

    def _takes_as_stored(self, run: PublishRun, segment: PublishSegment, grant: Grant) -> bool:
        """Whether the stored packets, but for their identifiers, are what it gets."""
        return (
            segment.plain
            and self.aliases is None
            and segment.qos <= grant.qos
            and not (segment.retain or grant.identifiers)
            and run.has_properties == self.addressee.has_properties
            and segment.end - segment.begin <= self.packet_bytes_max
        )

    def flush(self) -> None:
        """Send the packed packets."""
        if self._packed:
            pieces, self._packed = self._packed, []
            count, self._packed_count = self._packed_count, 0
            self.sent += count
            self._outlet.send(pieces, count)
            self._congested = self._outlet.congested

    def release(self, numbers: Sequence[int]) -> None:
        """Send PUBREL for each."""
        self._outlet.send([b"".join([PUBREL + u16(number) for number in numbers])], len(numbers))

    async def has_room_for_retained(
        self, message: KeyedMessage, subscription: TopicSubscription
    ) -> None:
        """Wait until a retained message may be sent, or the connection is closed."""
        qos = min(message.packet.qos, subscription.qos)
        while not (self.gone or self._has_room_for(qos)):
            self.flush()
            await self.goes_on()

    async def goes_on(self) -> None:
        """Wait until there is room for more than before, perhaps: the client has acknowledged
        something, leaves a log, or is gone.
        """
        if self._room is None:
            self._room = trio.lowlevel.ParkingLot()
        await self._room.park()

    def send_retained(
        self, source: MessageSource, message: KeyedMessage, subscription: TopicSubscription
    ) -> None:
        """Send a retained message to a new subscription, once there is room; `flush` follows."""
        qos = min(message.packet.qos, subscription.qos)
        if self.gone:
            return
        identifiers = (subscription.identifier,) if subscription.identifier else ()
        grant = Grant(subscription.qos, True, identifiers)  # RETAIN is 1
        number = 0
        if qos:
            number = self.ids.begin(Sent(source, MessagePlace(message.position, 0)), qos)
        pack = partial(self._pack_retained, message, grant, qos, number)
        if qos == 2 and self._durable:
            self._record_before(number, pack)
        else:
            pack()

    def _pack_retained(self, message: KeyedMessage, grant: Grant, qos: int, number: int) -> None:
        if not self._pack(message.packet, message.published_ms, grant, qos, number) and number:
            self.ids.forget(number)

    def _record_before(self, number: int, pack: Callable[[], None]) -> None:
        """Have the identifier of a message recorded before that is sent."""
        if not self._recording:
            self._window, self.ids.window = self.ids.window, 0
        self._recording += 1
        self.when_saved(partial(self._recorded, number, pack))

    def _recorded(self, number: int, pack: Callable[[], None]) -> None:
        if self.ids.get(number) is not None:  # else the client acknowledged what it did not get
            pack()
        self._recording -= 1
        if not self._recording:
            self.ids.window = self._window
            self.flush()
            self.has_room()

    def _has_room_for(self, qos: int) -> bool:
        if self.gone or self._congested:
            return False
        window = self._window if self._recording else self.ids.window
        return not qos or not (self._resending or len(self.ids) >= window)

    def close(self) -> None:
        """Its connection is closed."""
        self.gone = True
        self.when_saved = at_once
        self._wake_replays()

    def leave(self, feed: Feed) -> None:
        super().leave(feed)
        self._wake_replays()

    def _wake_replays(self) -> None:
        if self._room is not None:
            self._room.unpark_all()

    def send(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        packet: StoredPublish,
        grant: Grant,
        group: SharingGroup | None = None,
    ) -> bool:
        """Send a message of QoS 1 or 2, of its own subscriptions or of a group's; False if there is
        no room.
        """
        ids = self.ids
        if self._resending or self._congested or ids.is_full:
            return False
        qos = min(packet.qos, grant.qos)
        sent, dup = Sent(feed, MessagePlace(position, packet.place), group), False
        if self._durable:
            number = packet_id_of(feed, messages.first_index + packet.place)
            if not ids.claim(number, sent, qos):
                return False
            dup = bool(self._doubtful) and self._may_be_sent(feed, position)
        else:
            number = ids.begin(sent, qos)
        if not self._pack(packet, messages.published_ms, grant, qos, number, dup=dup):
            ids.forget(number)
        elif group is not None:
            group.sent(sent)
        return True

    def send_segment(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        segment: PublishSegment,
        start: int,
        grant: Grant,
    ) -> int:
        run = messages.run
        if run is None or self._doubtful or not self._takes_as_stored(run, segment, grant):
            return super().send_segment(feed, position, messages, segment, start, grant)
        if self._resending or self._congested:
            return 0
        places, room = messages.places_of(segment), self.ids.room
        if start or room < segment.packets:
            places = places[start : start + max(room, 0)]
        sent = SentTogether(feed, position, places)
        if self._durable and places:
            number = packet_id_of(feed, messages.first_index + places[0])
            numbers = self.ids.claim_many(number, sent, segment.qos)
        else:
            numbers = self.ids.begin_many(sent, segment.qos)
        if numbers:
            begin = behind(run.data, segment.begin, start)
            whole = start + len(numbers) == segment.packets
            end = segment.end if whole else behind(run.data, begin, len(numbers))
            self._packed.append(renumbered(run.data, begin, end, numbers))
            self._packed_count += len(numbers)
        return len(numbers)

    def send_unconfirmed(self, messages: Messages, packet: StoredPublish, grant: Grant) -> bool:
        """Send a message with QoS 0; False if the connection has no room."""
        if not self._congested:
            self._pack(packet, messages.published_ms, grant, 0, 0)
        return not self._congested

    def _may_be_sent(self, feed: Feed, position: Position) -> bool:
        """Whether the message may have been sent before a crash."""
        before = self._doubtful.get(feed)
        if before is not None and position >= before:
            del self._doubtful[feed]
            return False
        return before is not None

    def _pack(
        self,
        packet: StoredPublish,
        published_ms: int,
        grant: Grant,
        qos: int,
        number: int,
        dup: bool = False,
    ) -> bool:
        """Pack a message; False if it has expired or is too large."""
        seconds_left = None
        if packet.properties:
            deadline = expires_at(packet.properties, published_ms)
            if deadline is not None:
                left_ms = deadline - self._clock.wall_ms()
                if left_ms <= 0 and not dup:  # what may have been sent stays [MQTT-4.3.3-7]
                    return False  # [MQTT-3.3.2-5]
                seconds_left = max(0, -(-left_ms // 1000))
        retain = packet.retain and grant.retain_as_published
        addressee, alias = self.addressee, NO_ALIAS
        if grant.identifiers:
            addressee = addressee._replace(identifiers=grant.identifiers)
        if self.aliases is not None:
            alias = self.aliases.alias_of(packet.topic)
            addressee = addressee._replace(alias=alias)
        first = first_byte(qos, retain=retain, dup=dup)
        data = packed(packet, first, number, addressee, seconds_left)
        if len(data) > self.packet_bytes_max:
            self._drop()
            return False
        self._packed.append(data)
        self._packed_count += 1
        if self.aliases is not None:
            self.aliases.sent(packet.topic, alias)
        return True

    def _drop(self, packets: int = 1) -> None:
        self.dropped += packets
        self._outlet.dropped(packets)

    # -- catching up ------------------------------------------------------------------------------

    def has_room(self) -> None:
        """Go on: messages were acknowledged, or the connection or a feed has room again."""
        if self._held:
            return
        if self._congested:
            self._congested = self._outlet.congested
        unanswered = len(self.ids) - len(self._resending)
        if self.gone or self._congested or 2 * unanswered > self.ids.window:
            return
        self._wake_replays()
        if self._resending:
            if not self._resends:
                self._resends = True
                self._spawn(self._resend)
            return
        if self._lagging:
            self.catch_up()
        for group in self.groups:
            group.has_room()

    def grant_of(self, topic: bytes, *, own: bool) -> Grant | None:
        """The options with which it gets the messages of a topic; None if it does not."""
        return self.subscriptions.grant_of(topic, own=own)


def at_once(call: Callable[[], None]) -> None:
    """Call now: nothing of the session is stored."""
    call()


def packet_id_of(feed: Feed, index: int) -> int:
    """The packet identifier of a message with that index, for durable subscribers."""
    return (feed.packet_id_offset + index) % PACKET_ID_MAX + 1
