"""Retained messages: the last one of each topic, in a compacted topic and in memory.

A message with RETAIN is stored in the retained topic, and in the log of its topic like any other;
it is acknowledged when both are stored. An empty payload removes the retained message
[MQTT-3.3.1-6].

    in memory   the message, up to a budget in bytes
    beyond it   its position, from where it is read when somebody subscribes

Both are bytes, without the topic, which the tree has:

    in memory   u8 first byte of PUBLISH | position | time | size, client id | size, properties
                | payload; numbers are varints
    beyond it   u8 0 | position | when it expires, in ms since 1970, if it does

Expired messages are sent to nobody, and deleted within a minute, as by an empty payload; so
compaction removes them from storage.

The topics are always in memory, and have a budget of their own; a new one beyond it is refused.

A replay sends all matches to one new subscription, as fast as its client acknowledges and receives
(mosquitto #3096: there, only as many arrive as its queue has room for). It holds names of the tree
it walks through, and no messages; a client has one at a time. A SUBSCRIBE divides all messages:

    stored in their log before it    replayed, behind those that the client is still to get from the
                                     log, since it had subscribed before
    stored in their log after it     sent as they come, and not replayed

Rights are those of the topic as it is mapped now, whether its log is there or not: a message
outlives the log of its topic, and the rules that mapped it.

The two writes of a message end in any order. So each is noted until its message is in the log, and
the last `NOTED_MAX` after that: in a replay that takes longer, one may come twice.

Invariants: the tree has the last stored message of each topic, in the order of their storage; bytes
in memory do not exceed the budget by more than one message; after a newer message of its topic none
is replayed; nor is one to a client that may not read its topic.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.mqtt import run as runs
from magnetar.core.entry.mqtt.properties import expires_at
from magnetar.core.entry.mqtt.run import StoredPublish
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted, QuotaExceeded
from magnetar.core.kernel.varints import number_at, varint, varint_end
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.mqtt.delivery.feed import Feed
from magnetar.wire.mqtt.delivery.logs import MqttLog
from magnetar.wire.mqtt.delivery.matcher import TopicSubscription
from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage, Messages
from magnetar.wire.mqtt.delivery.subscriber import Cut, Subscriber
from magnetar.wire.mqtt.matching.name_tree import NameTree
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog

log = logging.getLogger(__name__)

MESSAGES_PER_TURN: Final = 100
SWEEP_SECONDS: Final = 60.0
DELETED_AT_ONCE: Final = 50
"""Deletions that are on their way to storage."""
NOTED_MAX: Final = 1_024
FEED_SECONDS: Final = 0.02
"""How often a replay looks whether a log that is being loaded is read up to where it has to be."""
_READ: Final = b"\0"
"""The message is read from storage."""


class RetainedMessage(NamedTuple):
    """A message with RETAIN."""

    client_id: str
    """Its publisher."""
    topic: str
    payload: bytes
    qos: int
    properties: bytes
    """Encoded, without their length and a topic alias."""


class RetainedWrite:
    """A message that is being stored, and is on its way to the log of its topic."""

    __slots__ = ("logged", "position")

    def __init__(self) -> None:
        self.position: Position | None = None
        """In the retained topic, once it is stored there."""
        self.logged = 0
        """Its number among all that are in their logs, once it is."""


class RetainedMessages:
    """See the module's docstring."""

    replays = True

    def __init__(
        self, broker: Broker, stored: KeyedLog, bytes_max: int, names_bytes_max: int
    ) -> None:
        self._broker = broker
        self._stored = stored
        self._bytes_max = bytes_max
        self._names_bytes_max = names_bytes_max
        self._tree: NameTree[bytes] = NameTree()
        self.bytes = 0
        """Bytes of the messages in memory."""
        self._begun = self._ended = 0
        """Writes, which end in their order."""
        self._writing: Counter[str] = Counter()
        """The same by topic."""
        self._unlogged: set[Position] = set()
        """Stored messages that are not in the logs of their topics yet."""
        self._logged = 0
        """Messages that are, and the last of them with their numbers."""
        self._noted: dict[Position, int] = {}
        self._waiting = trio.lowlevel.ParkingLot()
        """Replays that wait for writes which have begun before them."""
        self._may_expire = False
        """Whether one of them has an expiry interval."""

    @property
    def count(self) -> int:
        return self._tree.count

    # -- opening ----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load the retained messages, if there are any."""
        if await self._stored.exists():
            await self._stored.replay(self._apply)

    @property
    def is_open(self) -> bool:
        """Whether messages can be stored now."""
        return self._stored.is_open

    async def prepare(self) -> None:
        """Open the retained topic, so that `put` can write."""
        if not self._stored.is_open:
            await self._stored.open()

    # -- writing ----------------------------------------------------------------------------------

    def put(
        self, message: RetainedMessage, now_ms: int, done: Callable[[Position | BrokerError], None]
    ) -> RetainedWrite:
        """Store a message; an empty payload removes the topic's. Plain call, after `prepare`. Once
        it is in the log of its topic, or will not be, `logged` follows.
        """
        write = RetainedWrite()
        if message.payload and self.is_full_for(message.topic):
            done(QuotaExceeded("no memory for the names of more retained messages"))
            return write
        topic, client_id = message.topic.encode(), message.client_id.encode()
        first = runs.PUBLISH | message.qos << 1 | runs.RETAIN
        head = runs.head(client_id, has_properties=True)
        packet = runs.packet(first, topic, message.properties, message.payload)
        publish = StoredPublish(0, first, topic, message.properties, message.payload, 0, 0)

        def stored(result: Position | BrokerError) -> None:
            self._ended += 1
            self._writing[message.topic] -= 1
            if not self._writing[message.topic]:
                del self._writing[message.topic]
            self._waiting.unpark_all()
            if not isinstance(result, BrokerError):
                write.position = result
                if write.logged:
                    self._note(result, write.logged)
                else:
                    self._unlogged.add(result)
                self._apply(KeyedMessage(result, now_ms, client_id, publish))
            done(result)

        self._begun += 1
        self._writing[message.topic] += 1
        self._stored.append(head + packet, now_ms, stored)
        return write

    def logged(self, write: RetainedWrite) -> None:
        """The message is in the log of its topic, from where clients get it, or never will be."""
        self._logged += 1
        write.logged = self._logged
        if write.position is not None:
            self._unlogged.remove(write.position)
            self._note(write.position, write.logged)

    def _note(self, position: Position, logged: int) -> None:
        self._noted[position] = logged
        if len(self._noted) > NOTED_MAX:
            del self._noted[next(iter(self._noted))]

    def is_full_for(self, topic: str) -> bool:
        """Whether `put` refuses a message of this topic that is not empty."""
        return self._tree.bytes >= self._names_bytes_max and self._tree.get(topic) is None

    def _apply(self, message: KeyedMessage) -> None:
        """Put one stored message into the tree, or remove one."""
        name, deadline = message.packet.topic.decode(), _deadline(message)
        if not message.packet.payload:
            self._forget(self._tree.remove(name))
            return
        self._may_expire = self._may_expire or deadline is not None
        value = _packed(message)
        if self.bytes + len(value) > self._bytes_max:
            value = _READ + _position(message.position) + (varint(deadline) if deadline else b"")
        else:
            self.bytes += len(value)
        self._forget(self._tree.get(name))
        self._tree.set(name, value)

    def _forget(self, value: bytes | None) -> None:
        if value is not None and value[:1] != _READ:
            self.bytes -= len(value)

    # -- expiry -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Delete messages that have expired, until cancelled."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            if self._may_expire:
                await self.sweep()

    async def sweep(self) -> None:
        """Delete the messages that have expired (3.3.2.3.3)."""
        self._may_expire = may_expire = False
        expired: list[str] = []
        for found in self._tree.all():
            if found is None:
                await trio.lowlevel.checkpoint()
                continue
            name, value = found
            deadline = _deadline_in(name, value)
            may_expire = may_expire or deadline is not None
            if self._is_over(deadline):
                expired.append(name)
        self._may_expire = self._may_expire or may_expire
        try:
            for start in range(0, len(expired), DELETED_AT_ONCE):
                await self.delete(expired[start : start + DELETED_AT_ONCE], self._has_expired)
        except BrokerError as error:
            log.warning("expired retained messages are deleted later: %s", error)

    def _has_expired(self, topic: str) -> bool:
        """Whether it is to be deleted: no other message is there, or on its way."""
        value = self._tree.get(topic)
        return (
            value is not None
            and topic not in self._writing
            and self._is_over(_deadline_in(topic, value))
        )

    def _is_over(self, deadline: int | None) -> bool:
        return deadline is not None and deadline <= self._broker.clock.wall_ms()

    # -- deleting ---------------------------------------------------------------------------------

    async def delete(
        self, topics: Sequence[str], only_if: Callable[[str], bool] | None = None
    ) -> int:
        """Delete messages; returns how many there were. Stored when this returns."""
        await self.prepare()
        is_there = only_if or (lambda topic: self._tree.get(topic) is not None)
        present = [topic for topic in topics if is_there(topic)]
        now_ms = self._broker.clock.wall_ms()
        waits: list[Completion[Position]] = []
        for topic in present:
            waits.append(Completion())
            nothing = RetainedMessage("", topic, b"", 0, b"")
            self.logged(self.put(nothing, now_ms, waits[-1].done))
        for wait in waits:
            await wait.result()
        return len(present)

    # -- reading ----------------------------------------------------------------------------------

    def topics(self, filter: str | None = None) -> Iterator[str | None]:
        """The topics that a filter matches, or all, in any order; None now and then, as in
        `NameTree`.
        """
        matches = self._tree.all() if filter is None else self._tree.match(filter)
        return (None if one is None else one[0] for one in matches)

    async def find(self, topic: str) -> KeyedMessage | None:
        """The message of a topic; None if there is none."""
        value = self._tree.get(topic)
        found = None if value is None else await self._message(topic, value)
        return None if found is None or self._is_over(_deadline(found)) else found

    def cut(self, subscriber: Subscriber, logs: Sequence[MqttLog]) -> Cut:
        """Note what has come before a SUBSCRIBE, which is about to read these logs."""
        read = [(log.feed, log.feed.last) for log in logs if log.feed.is_read_by(subscriber)]
        return Cut(self._begun, self._logged, read)

    def replay(
        self,
        subscriber: Subscriber,
        subscription: TopicSubscription,
        cut: Cut,
        may_read: Callable[[str], bool],
    ) -> None:
        """Send the retained messages that a subscription matches, and that came before the cut, if
        the client may read their topics when it gets them.
        """
        if not self._tree.count and self._ended == self._begun:
            return
        is_idle = not subscriber.replays
        subscriber.replays[subscription.filter] = subscription, cut, may_read
        if is_idle:
            self._broker.spawn(self._replay_all, subscriber)

    async def _replay_all(self, subscriber: Subscriber) -> None:
        """One after the other; who subscribes again before its turn has come gets them once."""
        replays = subscriber.replays
        while replays and not subscriber.gone:
            filter, due = next(iter(replays.items()))
            await self._replay(subscriber, *due)
            if replays[filter] is due:
                del replays[filter]
        replays.clear()

    async def _replay(
        self,
        subscriber: Subscriber,
        subscription: TopicSubscription,
        cut: Cut,
        may_read: Callable[[str], bool],
    ) -> None:
        while self._ended < cut.begun:
            await self._waiting.park()
        for feed, last in cut.read:
            await _has_read(subscriber, feed, last)
        for count, found in enumerate(self._tree.match(subscription.filter)):
            if subscriber.gone or subscription.filter not in subscriber.subscriptions.by_filter:
                return
            if found is None:
                await trio.lowlevel.checkpoint()
                continue
            message = await self._due_message(*found) if may_read(found[0]) else None
            if message is None:
                continue
            if subscription.no_local and message.client_id == subscriber.client_id:
                continue
            await subscriber.has_room_for_retained(message, subscription)
            if self._is_last_before(cut, *found) and may_read(found[0]):
                subscriber.send_retained(self, message, subscription)
            if count % MESSAGES_PER_TURN == 0:
                subscriber.flush()
                await trio.lowlevel.checkpoint()
        subscriber.flush()

    async def _due_message(self, name: str, value: bytes) -> KeyedMessage | None:
        """The message of a tree's value; None if it cannot be sent."""
        try:
            message = await self._message(name, value)
        except BrokerError as error:
            log.error("the retained message of %r cannot be read: %s", name, error)
            return None
        return None if message is None or self._is_over(_deadline(message)) else message

    def _is_last_before(self, cut: Cut, name: str, value: bytes) -> bool:
        """Whether a message came before a cut, and no other of its topic after it."""
        if name in self._writing or self._tree.get(name) != value:
            return False  # a newer one comes from the log
        position, _ = _position_at(value, 1)
        return position not in self._unlogged and self._noted.get(position, 0) <= cut.logged

    async def _message(self, name: str, value: bytes) -> KeyedMessage | None:
        """The message of a tree's value; None if it has been replaced meanwhile."""
        if value[:1] != _READ:
            return _unpacked(name, value)
        position, _ = _position_at(value, len(_READ))
        return await self._stored_at(position)

    async def _stored_at(self, position: Position) -> KeyedMessage | None:
        try:
            return await self._stored.message_at(position)
        except Corrupted:
            return None

    # -- as the source of messages in flight --------------------------------------------------

    @property
    def full_name(self) -> str:
        return self._stored.name.full

    async def message_at(self, position: Position) -> Messages:
        """One message that is sent again; none if it was replaced."""
        message = await self._stored_at(position)
        if message is None:
            return Messages(b"", 0, ())
        return Messages(message.client_id, message.published_ms, (message.packet,))


async def _has_read(subscriber: Subscriber, feed: Feed, last: Position) -> None:
    """Wait until a subscriber has got an entry, and all before it, unless it stops reading."""
    while not subscriber.gone and feed.is_read_by(subscriber):
        if subscriber.place_in(feed).position > last:
            return
        if subscriber.is_lagging(feed):
            await subscriber.goes_on()
        else:
            await trio.sleep(FEED_SECONDS)


def _deadline(message: KeyedMessage) -> int | None:
    """When it expires, in ms since 1970; None for never."""
    properties = message.packet.properties
    return expires_at(properties, message.published_ms) if properties else None


def _deadline_in(name: str, value: bytes) -> int | None:
    """The same for a value of the tree."""
    if value[:1] != _READ:
        return _deadline(_unpacked(name, value))
    _, at = _position_at(value, len(_READ))
    return _number(value, at)[0] if at < len(value) else None


def _packed(message: KeyedMessage) -> bytes:
    packet, client_id = message.packet, message.client_id
    return b"".join((
        bytes((packet.first,)), _position(message.position), varint(message.published_ms),
        varint(len(client_id)), client_id,
        varint(len(packet.properties)), packet.properties, packet.payload,
    ))  # fmt: skip


def _unpacked(name: str, data: bytes) -> KeyedMessage:
    position, at = _position_at(data, 1)
    published_ms, at = _number(data, at)
    size, at = _number(data, at)
    client_id = data[at : at + size]
    size, at = _number(data, at + size)
    properties, payload = data[at : at + size], data[at + size :]
    packet = StoredPublish(0, data[0], name.encode(), properties, payload, 0, 0)
    return KeyedMessage(position, published_ms, client_id, packet)


def _position(position: Position) -> bytes:
    return varint(position[0]) + varint(position[1])


def _position_at(data: bytes, at: int) -> tuple[Position, int]:
    ledger_id, at = _number(data, at)
    entry_id, at = _number(data, at)
    return (ledger_id, entry_id), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    end = varint_end(data, at, len(data))
    return number_at(data, at, end), end
