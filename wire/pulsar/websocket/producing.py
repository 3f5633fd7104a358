"""A producer over WebSocket: messages in JSON become SENDs, receipts become JSON. Pure.

    attaching   a PRODUCER was sent for the topic, or for each partition, and not all are answered
    attached    a message is sent to a partition at once; receipts come in order, of each partition

A partition that the broker has closed (an unload) is attached again. Messages that it had not
stored are answered with an error, since the connection that they were sent on is no more.

Invariant: each message is answered once, and with "ok" only if the broker says that it is stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from magnetar.core.dispatch.murmur import murmur3
from magnetar.core.kernel.errors import Invalid
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.replies import Type
from magnetar.wire.pulsar.websocket import contents
from magnetar.wire.pulsar.websocket.contents import Position, ProducerWays
from magnetar.wire.pulsar.websocket.documents import (
    EncryptionKey,
    Failure,
    Published,
    encryption_keys,
    failed,
    published,
    stored,
)
from magnetar.wire.pulsar.websocket.endpoint import (
    CODECS,
    HASHES,
    INT_MAX,
    LONG_MAX,
    ROUTING_MODES,
    RefusedRequest,
    WebSocketEndpoint,
)
from magnetar.wire.pulsar.websocket.exchange import (
    ATTEMPTS_MAX,
    CLOSED_BY_BROKER,
    STEADY_MS,
    DialogueExchange,
)

CONTEXT_LETTERS_MAX: Final = 1 << 20
"""Of the contexts of messages that are not stored yet; no memory of the link counts them."""
KEY_LETTERS_MAX: Final = 4_096
"""Of a key, for `JavaStringHash`: a millisecond."""


class PartitionProducer:
    """The producer of one partition, or of the topic."""

    __slots__ = (
        "attempts",
        "known",
        "name",
        "next_sequence_id",
        "pending",
        "ready",
        "since",
        "topic",
    )

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.name = ""
        self.next_sequence_id = 0
        self.pending: deque[tuple[int, str | None]] = deque()
        """Sequence id and context of messages without a receipt."""
        self.ready = False
        self.known = False
        """Whether it was ever attached. Then messages are for it, also while it is reloaded."""
        self.attempts = self.since = 0
        """How often it was attached again in a row, and when last, in milliseconds."""


class ProducerDialogue:
    """See the module's docstring."""

    def __init__(
        self,
        endpoint: WebSocketEndpoint,
        exchange: DialogueExchange,
        message_bytes_max: int,
        chance: int,
    ) -> None:
        """`chance` chooses the partition of messages without a key. Raises `RefusedRequest`."""
        query = endpoint.query
        self._endpoint = endpoint
        self._exchange = exchange
        self._message_bytes_max = message_bytes_max
        self._codec = CODECS[endpoint.choice("compressionType", CODECS, "NONE")]
        self._murmur = endpoint.choice("hashingScheme", HASHES, HASHES[0]) == HASHES[1]
        self._routing = endpoint.choice("messageRoutingMode", ROUTING_MODES, ROUTING_MODES[0])
        self._first_sequence_id = endpoint.number("initialSequenceId", -1, -1, LONG_MAX) + 1
        self._name = endpoint.name("producerName")
        self._pending_max = _pending_max_of(endpoint)
        _check_without_effect(endpoint)
        self._keys = _keys_of(query.get("encryptionKeys"))
        self._next = chance
        self._partitions: list[PartitionProducer] = []
        self._context_letters = 0
        self._is_partitioned = False

    def attach(self, names: Sequence[str], *, numbered: bool) -> None:
        self._is_partitioned = numbered
        self._partitions = [PartitionProducer(each) for each in names]
        for producer_id in range(len(names)):
            self._attach(producer_id)

    def grow(self, names: Sequence[str]) -> None:
        for name in names:
            self._partitions.append(PartitionProducer(name))
            self._attach(len(self._partitions) - 1)

    def _attach(self, producer_id: int) -> None:
        partition = self._partitions[producer_id]
        name = partition.name or self._name
        command = pb.CommandProducer(
            topic=partition.topic,
            producer_id=producer_id,
            request_id=producer_id + 1,
            encrypted=bool(self._keys),
            user_provided_producer_name=bool(self._name),
        )
        if name:
            command.producer_name = name
        self._exchange.command(Type.PRODUCER, command)

    # -- the broker ---------------------------------------------------------------------------

    def hear(self, command: pb.BaseCommand, tail: bytes) -> None:
        if command.type == Type.PRODUCER_SUCCESS:
            self._attached(command.producer_success)
        elif command.type == Type.SEND_RECEIPT:
            self._stored(command.send_receipt)
        elif command.type == Type.SEND_ERROR:
            self._failed(command.send_error)
        elif command.type == Type.CLOSE_PRODUCER:
            self._closed(command.close_producer.producer_id)
        elif command.type == Type.ERROR:
            self._exchange.refused(command.error.error, command.error.message)

    def _attached(self, success: pb.CommandProducerSuccess) -> None:
        partition = self._partitions[success.request_id - 1]
        partition.ready = partition.known = True
        partition.since = self._exchange.now_ms()
        partition.name = success.producer_name
        first = max(success.last_sequence_id + 1, partition.next_sequence_id)
        partition.next_sequence_id = max(first, self._first_sequence_id)
        if all(each.ready for each in self._partitions):
            self._exchange.attached()

    def _stored(self, receipt: pb.CommandSendReceipt) -> None:
        partition = self._partitions[receipt.producer_id]
        if not partition.pending or partition.pending[0][0] != receipt.sequence_id:
            return
        context = self._answered(partition)
        partition.attempts = 0
        at = receipt.message_id
        place = receipt.producer_id if self._is_partitioned else -1
        text = contents.position_text(Position(place, at.ledger_id, at.entry_id))
        self._exchange.text(stored(text, context))

    def _failed(self, error: pb.CommandSendError) -> None:
        partition = self._partitions[error.producer_id]
        if partition.pending and partition.pending[0][0] == error.sequence_id:
            context = self._answered(partition)
            self._exchange.text(failed(Failure.UNKNOWN, error.message, context))

    def _answered(self, partition: PartitionProducer) -> str | None:
        """The context of the oldest message, which is answered now."""
        _, context = partition.pending.popleft()
        self._context_letters -= len(context or "")
        return context

    def _closed(self, producer_id: int) -> None:
        partition = self._partitions[producer_id]
        if partition.ready and self._exchange.now_ms() >= partition.since + STEADY_MS:
            partition.attempts = 0
        partition.ready = False
        while partition.pending:
            reason = "the topic was closed before the message was stored"
            self._exchange.text(failed(Failure.UNKNOWN, reason, self._answered(partition)))
        partition.attempts += 1
        if partition.attempts > ATTEMPTS_MAX:
            self._exchange.close(CLOSED_BY_BROKER, "the broker closes the producer")
        else:
            self._attach(producer_id)

    # -- the peer -----------------------------------------------------------------------------

    def say(self, text: str) -> None:
        try:
            message = published(text)
        except msgspec.MsgspecError as error:
            self._exchange.text(failed(Failure.NOT_JSON, str(error), None))
            return
        try:
            payload = contents.payload_of(message)
            self._send(message, payload)
        except Invalid as error:
            self._exchange.text(failed(Failure.PAYLOAD, str(error), message.context))

    def _send(self, message: Published, payload: bytes) -> None:
        producer_id = self._choose(message.key)
        partition = self._partitions[producer_id]
        sequence_id = partition.next_sequence_id
        ways = ProducerWays(partition.name, self._codec, self._keys)
        now = self._exchange.now_ms()
        tail = contents.tail_of(message, payload, ways, sequence_id, now)
        reason = self._obstacle(partition, len(tail), len(message.context or ""))
        if reason:
            self._exchange.text(failed(Failure.UNKNOWN, reason, message.context))
            return
        partition.next_sequence_id += 1
        partition.pending.append((sequence_id, message.context))
        self._context_letters += len(message.context or "")
        command = pb.CommandSend(producer_id=producer_id, sequence_id=sequence_id)
        self._exchange.command(Type.SEND, command, tail)

    def _obstacle(self, partition: PartitionProducer, size: int, context_letters: int) -> str:
        """Why a message cannot be sent; empty if it can."""
        if size > self._message_bytes_max:
            return f"a message has at most {self._message_bytes_max} bytes"
        if not partition.ready:
            return "the topic is being loaded"
        if self._pending_max is not None and len(partition.pending) >= self._pending_max:
            return "Producer send queue is full"
        if self._context_letters + context_letters > CONTEXT_LETTERS_MAX:
            return "too much context waits for messages to be stored"
        return ""

    def _choose(self, key: str | None) -> int:
        count = len(self._partitions)
        while not self._partitions[count - 1].known:
            count -= 1  # those that were added are not attached yet
        if count == 1:
            return 0
        if key is not None:
            hashed = murmur3(key.encode()) if self._murmur else _java_hash(key)
            return hashed % count
        if self._routing == "RoundRobinPartition":
            self._next += 1
        return self._next % count

    def settle(self) -> None:
        """Each message is sent by itself."""

    def woken(self) -> None:
        """Nothing waits for a time."""

    def over(self) -> None:
        """Nothing is counted."""


def _pending_max_of(endpoint: WebSocketEndpoint) -> int | None:
    """The limit of messages that are not answered; Apache's service does not look at it, so one
    that is no number is none.
    """
    try:
        return endpoint.number("maxPendingMessages", 0) or None
    except RefusedRequest:
        return None


def _check_without_effect(endpoint: WebSocketEndpoint) -> None:
    """Check what Apache's service does of parameters for what does not exist here: each message is
    sent at once, and answered or refused.
    """
    endpoint.number("sendTimeoutMillis", 0)
    if endpoint.flag("batchingEnabled"):
        endpoint.number("batchingMaxMessages", 0, -INT_MAX)
        endpoint.number("batchingMaxPublishDelay", 1, 1)


def _keys_of(text: str | None) -> dict[str, EncryptionKey]:
    """The keys of a client that encrypts itself: base64 of JSON. Names alone would ask the server
    to encrypt, which has no keys (as Apache's has none without a `cryptoKeyReaderFactory`).
    """
    if text is None:
        return {}
    try:
        return encryption_keys(contents.base64_decoded(text))
    except (Invalid, msgspec.MsgspecError) as error:
        raise RefusedRequest(
            400, "Invalid query params: encryptionKeys is JSON in base64; this server has no keys"
        ) from error


def _java_hash(text: str) -> int:
    """`String.hashCode` without its sign, over UTF-16; of a long key, of its beginning."""
    found = 0
    units = text[:KEY_LETTERS_MAX].encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        found = (31 * found + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return found & 0x7FFFFFFF
