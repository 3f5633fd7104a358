"""Retained messages: the last one of each topic, in a compacted topic and in memory.

A message with RETAIN is stored in the log of its topic like any other, and in the retained topic;
it is acknowledged when both are stored. An empty payload removes the retained message
[MQTT-3.3.1-6].

    in memory   the message as it is sent, up to a budget in bytes
    beyond it   its position, from where it is read when somebody subscribes

A replay sends all matches to one new subscription, as fast as its client acknowledges and receives
(mosquitto #3096: there, only as many arrive as its queue has room for). It holds names of the tree
it walks through, and no messages.

Invariants: the tree has the last stored message of each topic, in the order of their storage; bytes
in memory do not exceed the budget by more than one message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.mqtt import run as runs
from magnetar.core.entry.mqtt.run import StoredPublish
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.mqtt.delivery.matcher import TopicSubscription
from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage, Messages
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.matching.name_tree import NameTree
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog

log = logging.getLogger(__name__)

MESSAGES_PER_TURN: Final = 100
_HEAD: Final = Layout(">QQQH")
"""Ledger id, entry id, publish time, size of the publisher's client id."""


class RetainedMessage(NamedTuple):
    """A message with RETAIN."""

    client_id: str
    """Its publisher."""
    topic: str
    payload: bytes
    qos: int
    properties: bytes
    """Encoded, without their length and a topic alias."""


class RetainedMessages:
    """See the module's docstring."""

    replays = True

    def __init__(self, broker: Broker, stored: KeyedLog, bytes_max: int) -> None:
        self._broker = broker
        self._stored = stored
        self._bytes_max = bytes_max
        self._tree: NameTree[bytes | Position] = NameTree()
        self.bytes = 0
        """Bytes of the messages in memory."""

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
    ) -> None:
        """Store a message; an empty payload removes the topic's. Plain call, after `prepare`."""
        topic, client_id = message.topic.encode(), message.client_id.encode()
        first = runs.PUBLISH | message.qos << 1 | runs.RETAIN
        head = runs.head(client_id, has_properties=True)
        packet = runs.packet(first, topic, message.properties, message.payload)
        publish = StoredPublish(0, first, topic, message.properties, message.payload, 0, 0)

        def stored(result: Position | BrokerError) -> None:
            if not isinstance(result, BrokerError):
                self._apply(KeyedMessage(result, now_ms, client_id, publish))
            done(result)

        self._stored.append(head + packet, now_ms, stored)

    def _apply(self, message: KeyedMessage) -> None:
        """Put one stored message into the tree, or remove one."""
        name = message.packet.topic.decode()
        if not message.packet.payload:
            self._forget(self._tree.remove(name))
            return
        packed = _packed(message)
        value: bytes | Position = packed
        if self.bytes + len(packed) > self._bytes_max:
            value = message.position
        else:
            self.bytes += len(packed)
        self._forget(self._tree.get(name))
        self._tree.set(name, value)

    def _forget(self, value: bytes | Position | None) -> None:
        if isinstance(value, bytes):
            self.bytes -= len(value)

    async def delete(self, topics: Sequence[str]) -> int:
        """Delete messages; returns how many there were. Stored when this returns."""
        present = [topic for topic in topics if self._tree.get(topic) is not None]
        await self.prepare()
        now_ms = self._broker.clock.wall_ms()
        waits: list[Completion[Position]] = []
        for topic in present:
            waits.append(Completion())
            self.put(RetainedMessage("", topic, b"", 0, b""), now_ms, waits[-1].done)
        for wait in waits:
            await wait.result()
        return len(present)

    # -- reading ----------------------------------------------------------------------------------

    def topics(self, filter: str | None = None) -> Iterator[str]:
        """The topics that a filter matches, or all, in any order; see `NameTree`."""
        found = self._tree.all() if filter is None else self._tree.match(filter)
        return (topic for topic, _ in found)

    async def find(self, topic: str) -> KeyedMessage | None:
        """The message of a topic; None if there is none."""
        value = self._tree.get(topic)
        return None if value is None else await self._message(value)

    def replay(self, subscriber: Subscriber, subscription: TopicSubscription) -> None:
        """Send the retained messages that a subscription matches."""
        if self._tree.count:
            self._broker.spawn(self._replay, subscriber, subscription)

    async def _replay(self, subscriber: Subscriber, subscription: TopicSubscription) -> None:
        own = subscriber.client_id
        for count, (_, value) in enumerate(self._tree.match(subscription.filter)):
            if subscriber.gone:
                return
            try:
                message = await self._message(value)
            except BrokerError as error:
                log.error("a retained message cannot be read: %s", error)
                continue
            if message is None or (subscription.no_local and message.client_id == own):
                continue
            await subscriber.send_retained(self, message, subscription)
            if count % MESSAGES_PER_TURN == 0:
                subscriber.flush()
                await trio.lowlevel.checkpoint()
        subscriber.flush()

    async def _message(self, value: bytes | Position) -> KeyedMessage | None:
        """The message of a tree's value; None if it has been replaced meanwhile."""
        if isinstance(value, bytes):
            return _unpacked(value)
        try:
            return await self._stored.message_at(value)
        except Corrupted:
            return None

    # -- as the source of messages in flight --------------------------------------------------

    @property
    def full_name(self) -> str:
        return self._stored.name.full

    async def message_at(self, position: Position) -> Messages:
        """One message that is sent again; none if it was replaced."""
        message = await self._message(position)
        if message is None:
            return Messages(b"", 0, ())
        return Messages(message.client_id, message.published_ms, (message.packet,))


def _packed(message: KeyedMessage) -> bytes:
    packet = message.packet
    head = _HEAD.pack(*message.position, message.published_ms, len(message.client_id))
    data = runs.packet(packet.first, packet.topic, packet.properties, packet.payload)
    return head + message.client_id + data


def _unpacked(data: bytes) -> KeyedMessage:
    ledger_id, entry_id, published_ms, size = _HEAD.unpack_from(data)
    at = _HEAD.size + size
    client_id = data[_HEAD.size : at]
    run = runs.opened(runs.head(client_id, has_properties=True) + data[at:])
    (packet,) = run
    return KeyedMessage((ledger_id, entry_id), published_ms, client_id, packet)
