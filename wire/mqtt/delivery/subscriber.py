"""The delivery of messages to one connected client.

A subscriber packs PUBLISH packets while the client's window (Receive Maximum) and its connection
have room. Without room, it notes for the topic where it stopped, and catches up when half of the
window is free. Messages in flight are not kept in memory: they are read from the log by their place
if they have to be sent again.

Invariants: messages of QoS 1 and 2 are sent in their stored order [MQTT-4.6.0-5], and no more of
them are in flight than the window allows [MQTT-3.3.4-9]; a packet that is too large for the client
counts as delivered [MQTT-3.1.2-25].
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
"""The size of the largest possible packet."""


class Outlet(Protocol):
    """The connection as a subscriber uses it."""

    @property
    def congested(self) -> bool:
        """Whether it accepts no more now; its session is notified when it does."""
        ...

    def send(self, packets: Sequence[bytes]) -> None: ...


class Sent(NamedTuple):
    """A message in flight."""

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
        """The number of messages of QoS 0 without room, and of packets that were too large."""
        self._outlet = outlet
        self._clock = clock
        self._spawn = spawn
        self._lagging: dict[Feed, MessagePlace] = {}
        """Where to continue in the feeds in which it lags."""
        self._catching_up: set[Feed] = set()
        """Feeds with a task that catches up."""
        self._packed: list[bytes] = []
        self._congested = False

    @property
    def lags(self) -> bool:
        return bool(self._lagging)

    # -- sending ----------------------------------------------------------------------------------

    def offer(
        self,
        feed: Feed,
        position: Position,
        published_ms: int,
        packet: StoredPublish,
        grant: Grant,
    ) -> None:
        """Accept a message of a feed, if there is room; `flush` follows."""
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
        """Send the packed packets."""
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
        """Send a message of QoS 1 or 2; False if there is no room."""
        if self.ids.is_full or self._congested:
            return False
        number = self.ids.begin(Sent(feed, place), qos)
        if not self._pack(packet, published_ms, grant, qos, number):
            self.ids.forget(number)
        return True

    def _pack(
        self, packet: StoredPublish, published_ms: int, grant: Grant, qos: int, number: int
    ) -> bool:
        """Pack a message; False if it has expired or is too large."""
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

    # -- catching up ------------------------------------------------------------------------------

    def has_room(self) -> None:
        """Catch up: messages were acknowledged, or the connection has room again."""
        if self._congested:
            self._congested = self._outlet.congested
        if self._lagging and not self._congested and 2 * len(self.ids) <= self.ids.window:
            for feed in list(self._lagging):
                if feed not in self._catching_up:
                    self._catch_up(feed)
            self.flush()

    def _catch_up(self, feed: Feed) -> None:
        """Catch up with one feed, while there is room and entries are in memory."""
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
        """Send the rest of one entry; False if there is no room for all of it."""
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
        """Catch up with entries that are not in memory, or after other tasks have run."""
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
        """Stop reading a feed."""
        self._lagging.pop(feed, None)
