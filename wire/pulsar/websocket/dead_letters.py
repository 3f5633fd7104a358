"""Messages that were delivered too often, stored in another topic instead. Pure.

Apache's WebSocket proxy has a Java client do this (`DeadLetterPolicy`); here it is done by the
connection of the consumer, with a producer of its own: the messages are sent, and their entry is
acknowledged when all of them are stored. They are compressed as they were; an entry that is
encrypted stays one, for only the ends can take it apart.

Beyond `BYTES_MAX` under way, entries are put off: the broker keeps them, and delivers them again
when all that is under way is stored.

Invariant: an entry is reported by `take_stored` once, after the receipts of all its messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.replies import Type
from magnetar.wire.pulsar.websocket import contents
from magnetar.wire.pulsar.websocket.contents import OpenedEntry, Position, ProducerWays
from magnetar.wire.pulsar.websocket.documents import Published
from magnetar.wire.pulsar.websocket.endpoint import RefusedRequest, WebSocketEndpoint
from magnetar.wire.pulsar.websocket.exchange import CLOSED_BY_BROKER, DialogueExchange

PRODUCER_ID: Final = 1 << 20
REQUEST_ID: Final = 1 << 20
BYTES_MAX: Final = 4 * 1024 * 1024
"""Of entries that wait for their producer, or are being stored."""


class NamedLog(Protocol):
    """A topic or a partition that is read."""

    @property
    def topic(self) -> str: ...


class DeadEntry(NamedTuple):
    """An entry that waits to be sent."""

    tail: bytes
    position: Position
    acked: int


class EntryUnderWay:
    """What becomes of the messages of an entry."""

    __slots__ = ("count", "left", "size")

    def __init__(self, count: int, size: int) -> None:
        self.count = self.left = count
        """All messages, and those that are not stored."""
        self.size = size


class DeadLetters:
    """See the module's docstring."""

    def __init__(
        self,
        endpoint: WebSocketEndpoint,
        exchange: DialogueExchange,
        topic: str,
        message_bytes_max: int,
    ) -> None:
        self.topics: Sequence[NamedLog] = ()
        """Of a consumer of several: those by whose numbers messages say what they are of."""
        self.count_max = endpoint.number("maxRedeliverCount", 1, 1)
        self._endpoint = endpoint
        self._exchange = exchange
        self._topic = topic
        self._message_bytes_max = message_bytes_max
        self._name = ""
        """That of the producer; empty before it is attached."""
        self._is_attaching = False
        self._sequence_id = 0
        self._waiting: deque[DeadEntry] = deque()
        self._sent: deque[Position] = deque()
        self._under_way: dict[tuple[int, int, int], EntryUnderWay] = {}
        self._bytes = 0
        self._put_off: list[tuple[Position, int]] = []
        self._stored: list[tuple[Position, int]] = []

    @staticmethod
    def asked(
        endpoint: WebSocketEndpoint, exchange: DialogueExchange, message_bytes_max: int
    ) -> DeadLetters | None:
        """As the query wants it; None if it does not."""
        query = endpoint.query
        if "maxRedeliverCount" not in query and "deadLetterTopic" not in query:
            return None
        if "maxRedeliverCount" not in query:
            reason = "a deadLetterTopic needs a maxRedeliverCount"
            raise RefusedRequest(400, f"Invalid query params: {reason}")
        topic = query.get("deadLetterTopic") or f"{endpoint.topic}-{endpoint.subscription}-DLQ"
        try:
            full = TopicName.parse(topic).full
        except InvalidName as error:
            raise RefusedRequest(400, f"Invalid query params: {error}") from error
        return DeadLetters(endpoint, exchange, full, message_bytes_max)

    def add(self, tail: bytes, at: Position, acked: int) -> None:
        """An entry that was delivered too often. Raises `Corrupted` and `TooLong`."""
        if at[:3] in self._under_way:
            return  # it came again, to a consumer that was attached again
        size_max = self._message_bytes_max * contents.EXPANSION_MAX
        count = sum(1 for _ in contents.received(tail, at, 0, acked, size_max))
        if not count:
            self._stored.append((at, 0))
            return
        if self._bytes >= BYTES_MAX:
            self._put_off.append((at, count))
            return
        self._bytes += len(tail)
        self._under_way[at[:3]] = EntryUnderWay(count, len(tail))
        self._waiting.append(DeadEntry(tail, at, acked))
        if self._name:
            self._send()
        elif not self._is_attaching:
            self._is_attaching = True
            self._exchange.command(
                Type.PRODUCER,
                pb.CommandProducer(
                    topic=self._topic, producer_id=PRODUCER_ID, request_id=REQUEST_ID
                ),
            )

    def hear(self, command: pb.BaseCommand) -> bool:
        """What the broker says; False if it is not about this."""
        kind = command.type
        if kind == Type.PRODUCER_SUCCESS:
            self._name = command.producer_success.producer_name
            self._sequence_id = command.producer_success.last_sequence_id + 1
            self._send()
        elif kind == Type.SEND_RECEIPT:
            self._note_stored(self._sent.popleft())
        elif kind in (Type.CLOSE_PRODUCER, Type.SEND_ERROR):
            # the consumer is attached again by its client, and all of this is delivered again
            self._exchange.close(CLOSED_BY_BROKER, "dead letters cannot be stored")
        else:
            return False
        return True

    def take_stored(self) -> list[tuple[Position, int]]:
        """Entries that are stored there, and how many messages they had."""
        taken, self._stored = self._stored, []
        return taken

    def take_put_off(self) -> list[tuple[Position, int]]:
        """Entries that are to be delivered again, and how many messages they had."""
        if self._under_way:
            return []
        taken, self._put_off = self._put_off, []
        return taken

    def forget(self, partition: int) -> None:
        """Its consumer is attached again, and gets what was put off."""
        self._put_off = [each for each in self._put_off if each[0].partition != partition]

    def _note_stored(self, at: Position) -> None:
        one = self._under_way[at[:3]]
        one.left -= 1
        if not one.left:
            del self._under_way[at[:3]]
            self._bytes -= one.size
            self._stored.append((at, one.count))

    # -- sending ------------------------------------------------------------------------------

    def _send(self) -> None:
        while self._waiting:
            tail, at, acked = self._waiting.popleft()
            entry = contents.read(tail)
            if entry.about.encryption_keys:
                self._send_encrypted(entry, at)
            else:
                self._send_each(tail, at, acked, entry.about.compression)

    def _send_encrypted(self, entry: OpenedEntry, at: Position) -> None:
        now = self._exchange.now_ms()
        properties = self._properties(at)
        tail = contents.encrypted_tail_of(entry, self._name, properties, self._sequence_id, now)
        self._send_one(tail, at, max(entry.about.num_messages_in_batch, 1))

    def _send_each(self, tail: bytes, at: Position, acked: int, codec: pb.CompressionType) -> None:
        ways = ProducerWays(self._name, codec)
        for position, about in contents.received(tail, at, 0, acked):
            message = Published(
                properties={**self._properties(position), **about.properties},
                key=about.key if isinstance(about.key, str) else None,
                event_time=about.event_time if isinstance(about.event_time, str) else None,
            )
            payload = contents.base64_decoded(about.payload)
            now = self._exchange.now_ms()
            sent = contents.tail_of(message, payload, ways, self._sequence_id, now)
            self._send_one(sent, position)

    def _send_one(self, tail: bytes, at: Position, messages: int = 1) -> None:
        if len(tail) > self._message_bytes_max:
            self._exchange.close(CLOSED_BY_BROKER, "a dead letter is too long with its properties")
            return
        send = pb.CommandSend(
            producer_id=PRODUCER_ID, sequence_id=self._sequence_id, num_messages=messages
        )
        self._sent.append(at)
        self._sequence_id += 1
        self._exchange.command(Type.SEND, send, tail)

    def _properties(self, at: Position) -> dict[str, str]:
        topic = self.topics[at.partition].topic if self.topics else self._endpoint.topic.full
        return {
            "REAL_TOPIC": topic,
            "REAL_SUBSCRIPTION": self._endpoint.subscription,
            "ORIGIN_MESSAGE_ID": _java_text(at),
        }


def _java_text(at: Position) -> str:
    """A message id as Java's client writes it (`MessageIdImpl.toString`)."""
    text = f"{at.ledger_id}:{at.entry_id}:{at.partition}"
    return f"{text}:{at.batch_index}" if at.batch_index >= 0 else text
