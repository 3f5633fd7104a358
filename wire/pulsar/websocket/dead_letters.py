"""Messages that were delivered too often, stored in another topic instead. Pure.

Apache's WebSocket proxy has a Java client do this (`DeadLetterPolicy`); here it is done by the
connection of the consumer, with a producer of its own: the messages are sent, and their entry is
acknowledged when all of them are stored.

Invariant: an entry is reported by `take_stored` once, after the receipts of all its messages.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.replies import Type
from magnetar.wire.pulsar.websocket import contents
from magnetar.wire.pulsar.websocket.contents import Position, ProducerWays, ReceivedMessage
from magnetar.wire.pulsar.websocket.documents import Published
from magnetar.wire.pulsar.websocket.endpoint import RefusedRequest, WebSocketEndpoint
from magnetar.wire.pulsar.websocket.exchange import DialogueExchange

PRODUCER_ID: Final = 1 << 20
REQUEST_ID: Final = 1 << 20
COUNT_MAX: Final = 16
"""Deliveries again before that, without `maxRedeliverCount`, as Java's client has it."""


class DeadLetters:
    """See the module's docstring."""

    def __init__(self, endpoint: WebSocketEndpoint, exchange: DialogueExchange, topic: str) -> None:
        self.count_max = endpoint.number("maxRedeliverCount", COUNT_MAX, 1)
        self._endpoint = endpoint
        self._exchange = exchange
        self._topic = topic
        self._name = ""
        """That of the producer; empty before it is attached."""
        self._is_attaching = False
        self._sequence_id = 0
        self._waiting: deque[ReceivedMessage] = deque()
        self._sent: deque[ReceivedMessage] = deque()
        self._left: dict[tuple[int, int, int], list[int]] = {}
        """Of each entry: messages that are not stored, and all of them."""
        self._stored: list[tuple[Position, int]] = []

    @staticmethod
    def asked(endpoint: WebSocketEndpoint, exchange: DialogueExchange) -> DeadLetters | None:
        """As the query wants it; None if it does not."""
        query = endpoint.query
        if "maxRedeliverCount" not in query and "deadLetterTopic" not in query:
            return None
        topic = query.get("deadLetterTopic") or f"{endpoint.topic}-{endpoint.subscription}-DLQ"
        try:
            return DeadLetters(endpoint, exchange, TopicName.parse(topic).full)
        except InvalidName as error:
            raise RefusedRequest(400, f"Invalid query params: {error}") from error

    def add(self, tail: bytes, at: Position, acked: int) -> None:
        """An entry that was delivered too often. Raises `Corrupted`."""
        found = list(contents.received(tail, at, 0, acked))
        if not found:
            self._stored.append((at, 0))
            return
        self._left[at[:3]] = [len(found), len(found)]
        self._waiting.extend(found)
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
            self._note_stored(self._sent.popleft().position)
        elif kind in (Type.CLOSE_PRODUCER, Type.SEND_ERROR):
            # the consumer is attached again by its client, and all of this is delivered again
            self._exchange.close(1011, "dead letters cannot be stored")
        else:
            return False
        return True

    def take_stored(self) -> list[tuple[Position, int]]:
        """Entries that are stored there, and how many messages they had."""
        taken, self._stored = self._stored, []
        return taken

    def _note_stored(self, at: Position) -> None:
        left = self._left[at[:3]]
        left[0] -= 1
        if not left[0]:
            del self._left[at[:3]]
            self._stored.append((at, left[1]))

    def _send(self) -> None:
        while self._waiting:
            one = self._waiting.popleft()
            self._sent.append(one)
            about = one.document
            message = Published(
                properties={
                    "REAL_TOPIC": self._endpoint.topic.full,
                    "REAL_SUBSCRIPTION": self._endpoint.subscription,
                    "ORIGIN_MESSAGE_ID": _java_text(one.position),
                    **about.properties,
                },
                key=about.key if isinstance(about.key, str) else None,
                event_time=about.event_time if isinstance(about.event_time, str) else None,
            )
            payload = contents.base64_decoded(about.payload)
            tail = contents.tail_of(
                message,
                payload,
                ProducerWays(self._name),
                self._sequence_id,
                self._exchange.now_ms(),
            )
            send = pb.CommandSend(producer_id=PRODUCER_ID, sequence_id=self._sequence_id)
            self._sequence_id += 1
            self._exchange.command(Type.SEND, send, tail)


def _java_text(at: Position) -> str:
    """A message id as Java's client writes it (`MessageIdImpl.toString`)."""
    text = f"{at.ledger_id}:{at.entry_id}:{at.partition}"
    return f"{text}:{at.batch_index}" if at.batch_index >= 0 else text
