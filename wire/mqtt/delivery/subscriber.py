"""The messages on their way to one client: what it can take now, and where it goes on later.

A session that is awake has one. It packs PUBLISH packets as long as the client's window (Receive
Maximum) and its connection have room; where they have not, it remembers for the topic where it
stopped, and catches up when half of the window is free again. What it has sent stays in the log,
and is found there by its place if it is to be sent again.

Invariants: messages of QoS 1 and 2 go in the order in which they are stored [MQTT-4.6.0-5]; never
are more of them on their way than the window allows [MQTT-3.3.4-9]; a packet that is too large for
the client counts as delivered [MQTT-3.1.2-25].
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from magnetar.core.entry.mqtt.properties import expires_at
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.wire.mqtt.delivery.feed import ENTRIES_PER_TURN, RETRY_SECONDS, Feed, MessagePlace
from magnetar.wire.mqtt.delivery.matcher import Grant, TopicSubscription, target
from magnetar.wire.mqtt.delivery.outgoing_publish import Addressee, first_byte, packed
from magnetar.wire.mqtt.delivery.packet_ids import PacketIds
from magnetar.wire.mqtt.topics import matches

if TYPE_CHECKING:
    from magnetar.core.entry.mqtt.run import StoredPublish

log = logging.getLogger(__name__)

NO_LIMIT: Final = 268_435_460
"""Bytes of the largest packet there can be."""


class Outlet(Protocol):
    """The connection, as deliveries see it."""

    @property
    def congested(self) -> bool:
        """It takes no more now; its session is called when it does."""
        ...

    def send(self, packets: Sequence[bytes]) -> None: ...


class Sent(NamedTuple):
    """A message on its way."""

    feed: Feed
    place: MessagePlace


class Subscriber:
    """See the module's docstring."""

    __slots__ = (
        "_catching_up",
        "_clock",
        "_congested",
        "_lagging",
        "_outlet",
        "_packed",
        "_spawn",
        "addressee",
        "client_id",
        "dropped",
        "ids",
        "packet_bytes_max",
        "subscriptions",
    )

    def __init__(
        self,
        client_id: bytes,
        outlet: Outlet,
        window: int,
        clock: Clock,
        spawn: Callable[..., None],
    ) -> None:
        self.client_id = client_id
        self.addressee = Addressee(has_properties=False)
        self.packet_bytes_max = NO_LIMIT
        self.subscriptions: dict[str, TopicSubscription] = {}
        self.ids: PacketIds[Sent] = PacketIds(window)
        self.dropped = 0
        """Messages of QoS 0 for which there was no room, and packets that were too large."""
        self._outlet = outlet
        self._clock = clock
        self._spawn = spawn
        self._lagging: dict[Feed, MessagePlace] = {}
        """Where it goes on with the topics of which it could not take all."""
        self._catching_up: set[Feed] = set()
        """A task has its turn with these."""
        self._packed: list[bytes] = []
        self._congested = False

    @property
    def lags(self) -> bool:
        return bool(self._lagging)

    # -- what comes -------------------------------------------------------------------------------

    def offer(
        self,
        feed: Feed,
        position: Position,
        published_ms: int,
        packet: StoredPublish,
        grant: Grant,
    ) -> None:
        """A message of a feed, as it comes; `flush` follows."""
        qos = min(packet.qos, grant.qos)
        if not qos:
            if self._congested:
                self.dropped += 1
            else:
                self._pack(packet, published_ms, grant, 0, 0)
        elif feed not in self._lagging:
            place = MessagePlace(position, packet.place)
            if not self._send(feed, place, published_ms, packet, grant, qos):
                self._lagging[feed] = place

    def flush(self) -> None:
        """Hand what was packed to the connection."""
        if self._packed:
            packets, self._packed = self._packed, []
            self._outlet.send(packets)
            self._congested = self._outlet.congested

    def _send(
        self,
        feed: Feed,
        place: MessagePlace,
        published_ms: int,
        packet: StoredPublish,
        grant: Grant,
        qos: int,
    ) -> bool:
        """Whether there was room for a message of QoS 1 or 2."""
        if self.ids.is_full or self._congested:
            return False
        number = self.ids.begin(Sent(feed, place), qos)
        if not self._pack(packet, published_ms, grant, qos, number):
            self.ids.forget(number)
        return True

    def _pack(
        self, packet: StoredPublish, published_ms: int, grant: Grant, qos: int, number: int
    ) -> bool:
        """False if it is not sent: it has expired, or is too large."""
        seconds_left = None
        if packet.properties:
            deadline = expires_at(packet.properties, published_ms)
            if deadline is not None:
                left_ms = deadline - self._clock.wall_ms()
                if left_ms <= 0:
                    return False  # [MQTT-3.3.2-5]
                seconds_left = -(-left_ms // 1000)
        retain = packet.retain and grant.retain_as_published
        addressee = self.addressee
        if grant.identifiers:
            addressee = addressee._replace(identifiers=grant.identifiers)
        data = packed(packet, first_byte(qos, retain=retain), number, addressee, seconds_left)
        if len(data) > self.packet_bytes_max:
            self.dropped += 1
            return False
        self._packed.append(data)
        return True

    # -- what was acknowledged --------------------------------------------------------------------

    def has_room(self) -> None:
        """Messages were acknowledged, or the connection takes more again."""
        if self._congested:
            self._congested = self._outlet.congested
        if self._lagging and not self._congested and 2 * len(self.ids) <= self.ids.window:
            for feed in list(self._lagging):
                if feed not in self._catching_up:
                    self._catch_up(feed)
            self.flush()

    def _catch_up(self, feed: Feed) -> None:
        """Go on with one topic as far as there is room, and memory has it."""
        for _ in range(ENTRIES_PER_TURN):
            position, first = self._lagging[feed]
            normal = feed.normal(position)
            if normal != position:
                position, first = normal, 0  # it was trimmed meanwhile
            if position >= feed.at:
                del self._lagging[feed]
                return
            cached = feed.cached(position)
            if cached is None:
                break
            if not self._take(feed, position, first, *cached):
                return
        self._catching_up.add(feed)
        self._spawn(self._load, feed)

    def _take(self, feed: Feed, position: Position, first: int, part: Slice, at: int) -> bool:
        """The rest of one entry; False if there is no room for all of it."""
        messages = feed.messages(part, at)
        own = messages.client_id == self.client_id
        for packet in messages.packets:
            if packet.place < first:
                continue
            grant = self._grant(packet.topic, own=own)
            qos = 0 if grant is None else min(packet.qos, grant.qos)
            if qos and grant is not None:
                place = MessagePlace(position, packet.place)
                if not self._send(feed, place, messages.published_ms, packet, grant, qos):
                    self._lagging[feed] = place
                    return False
        self._lagging[feed] = MessagePlace(feed.next(position), 0)
        return True

    def _grant(self, topic: bytes, *, own: bool) -> Grant | None:
        name = topic.decode()
        matching = [one for one in self.subscriptions.values() if matches(one.filter, name)]
        if not matching:
            return None
        found = target(self, matching)
        return found.own if own else found.others

    async def _load(self, feed: Feed) -> None:
        """Catch up with what is not in memory, or after others have had their turn."""
        try:
            await trio.lowlevel.checkpoint()
            position, first = self._lagging[feed]
            position = feed.normal(position)
            if position < feed.at and feed.cached(position) is None:
                part = await feed.read(position)
                for at in range(len(part.payloads)):
                    if feed not in self._lagging or not self._take(feed, position, first, part, at):
                        break
                    position, first = self._lagging[feed]
                    if position >= feed.at:
                        break
        except BrokerError as error:
            log.error("%s: cannot read at %s: %s", feed.topic.name, position, error)
            await trio.sleep(RETRY_SECONDS)
        finally:
            self._catching_up.discard(feed)
        self.flush()
        self.has_room()

    def leave(self, feed: Feed) -> None:
        """It reads this topic no more."""
        self._lagging.pop(feed, None)
