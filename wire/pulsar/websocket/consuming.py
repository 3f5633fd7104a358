"""A consumer or a reader over WebSocket: MESSAGEs become JSON, JSON becomes ACKs. Pure.

How many messages are on their way is the peer's to say:

    pushed   `receiverQueueSize` of them; each acknowledgement, of either kind, brings another one
    pulled   as many as the peer has permitted (`pullMode`), and no more

Permits go to the broker, so what is not permitted stays there. Only a pulled partitioned topic is
different: any partition may have the next message, so one entry of each is fetched and waits here,
as it is stored. What waits is counted for all WebSockets together (`held_entries.py`).

A message of a batch is acknowledged by its place; the entry is, when all of its messages are.
Messages that are acknowledged negatively, or not at all for `ackTimeoutMillis`, are delivered again
after a while, by one timer for the connection. One that came more often than `maxRedeliverCount`
goes to the dead letter topic instead (`dead_letters.py`).

Invariant: of each partition the broker has been permitted as many messages as the peer may have
without an answer, at any time; none is permitted twice for one answer.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from magnetar.core.kernel.errors import Corrupted, Invalid
from magnetar.core.kernel.lazy_queue import LazyQueue
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.replies import UNASKED, Type
from magnetar.wire.pulsar.websocket import contents
from magnetar.wire.pulsar.websocket.contents import Position, position_of
from magnetar.wire.pulsar.websocket.dead_letters import DeadLetters
from magnetar.wire.pulsar.websocket.documents import (
    ConsumerCommand,
    EndOfTopicAnswer,
    command,
)
from magnetar.wire.pulsar.websocket.endpoint import (
    MODES,
    QUEUE_MAX,
    SUBSCRIPTION_TYPES,
    Kind,
    RefusedRequest,
    WebSocketEndpoint,
)
from magnetar.wire.pulsar.websocket.exchange import (
    ATTEMPTS_MAX,
    CLOSED_BY_BROKER,
    NOT_UNDERSTOOD,
    STEADY_MS,
    TRY_AGAIN_LATER,
    DialogueExchange,
)
from magnetar.wire.pulsar.websocket.held_entries import HeldEntries

TIMEOUT_MS_MIN: Final = 1_000
"""The shortest `ackTimeoutMillis` but 0, which is none (`ConsumerBuilderImpl.java` of 4.2)."""
NACK_MS: Final = 60_000
"""The delay of Java's client, without `negativeAckRedeliveryDelay`."""
TICK_MS: Final = 100
"""Redeliveries due within that time are made together."""
PERMITS_MAX: Final = 1 << 20
"""What a pulling client may have been permitted at a time."""
PARTITIONS_MAX: Final = 1_000
PULLED_PARTITIONS_MAX: Final = 64
"""Of a pulled topic: an entry of each waits here."""
HELD_MAX: Final = 100_000
"""Of each: batches, negative acknowledgements and messages with a timeout that are remembered. One
takes some 200 bytes, and a batch a bit per message. Beyond it the oldest batch is forgotten, the
oldest negative acknowledgement is due, and no message with a timeout is delivered.
"""
LATEST: Final = ((1 << 63) - 1, (1 << 63) - 1)
EARLIEST: Final = (UNASKED, UNASKED)
INITIAL: Final = ("Latest", "Earliest")
GONE: Final = (pb.TopicNotFound, pb.MetadataError)
Place = tuple[int, int, int]
"""A partition's number, a ledger and an entry."""


Start = tuple[int, int, int]
"""A ledger, an entry, and the place in its batch (-1 for all of it)."""


class PartitionConsumer:
    """The consumer of one partition, or of the topic."""

    __slots__ = (
        "attempts", "earliest", "ended", "outstanding", "ready", "returned", "since", "start",
        "topic",
    )  # fmt: skip

    def __init__(self, topic: str, start: Start | None, *, earliest: bool) -> None:
        self.topic = topic
        self.earliest = earliest
        """Whether a new subscription begins there."""
        self.ready = self.ended = False
        self.outstanding = 0
        """Messages that the peer has not answered."""
        self.returned = 0
        """Permits to give to the broker at the next `settle`."""
        self.attempts = self.since = 0
        """How often it was attached again in a row, and when last, in milliseconds."""
        self.start = start
        """Behind which a reader begins, or goes on when it attaches again."""


class ConsumerDialogue:
    """See the module's docstring."""

    def __init__(
        self,
        endpoint: WebSocketEndpoint,
        exchange: DialogueExchange,
        message_bytes_max: int,
        name: str,
        held: HeldEntries,
    ) -> None:
        """`name` is that of a reader's subscription. Raises `RefusedRequest`."""
        query = endpoint.query
        self._endpoint = endpoint
        self._exchange = exchange
        self._reads = endpoint.kind is Kind.READER
        reader = query.get("readerName") or name
        self._subscription = reader if self._reads else endpoint.subscription
        self._type = SUBSCRIPTION_TYPES[
            endpoint.choice("subscriptionType", SUBSCRIPTION_TYPES, "Exclusive")
        ]
        named = query.get("readerName" if self._reads else "consumerName")
        self._name = named or secrets.token_hex(3)[:5]  # as Java's client makes one up
        self._durable = endpoint.choice("subscriptionMode", MODES, MODES[0]) == MODES[0]
        self._earliest = (
            endpoint.choice("subscriptionInitialPosition", INITIAL, INITIAL[0]) == INITIAL[1]
        )
        self._priority = endpoint.number("priorityLevel", 0)
        self._queue = max(min(endpoint.number("receiverQueueSize", QUEUE_MAX), QUEUE_MAX), 1)
        self._pulls = endpoint.flag("pullMode") and not self._reads
        self._credit = 0
        """When pulled: messages that the peer has permitted and not got."""
        self._nack_ms = endpoint.number("negativeAckRedeliveryDelay", NACK_MS)
        self._timeout_ms = endpoint.number("ackTimeoutMillis", 0)
        if 0 < self._timeout_ms < TIMEOUT_MS_MIN:
            reason = f"Ack timeout should be greater than {TIMEOUT_MS_MIN} ms"
            raise RefusedRequest(400, f"Invalid query params: {reason}")
        endpoint.name("consumerName")
        self._start = _start_of(query.get("messageId", "")) if self._reads else None
        self._dead_letters = (
            None if self._reads else DeadLetters.asked(endpoint, exchange, message_bytes_max)
        )
        self._size_max = message_bytes_max * contents.EXPANSION_MAX
        self._shares: list[PartitionConsumer] = []
        self._is_numbered = False
        self._held: OrderedDict[Place, int] = OrderedDict()
        """Of a consumer's batches: a mask of the messages that are not acknowledged. Ordered, for a
        dict is slow to lose its oldest items.
        """
        self._undecoded = LazyQueue[tuple[pb.CommandMessage, bytes]]()
        """Entries beyond what the peer has permitted."""
        self._waiting = LazyQueue[contents.ReceivedMessage]()
        """Messages of the entry that is being delivered."""
        self._all_held = held
        self._held_bytes = 0
        """Of the last two."""
        self._due = LazyQueue[tuple[int, Position]]()
        """Negatively acknowledged messages, and when they are delivered again."""
        self._timeouts: OrderedDict[Position, int] = OrderedDict()
        """When each message is, that is not acknowledged by then; oldest first."""
        self._unsubscribing = False

    # -- attaching ----------------------------------------------------------------------------

    def attach(self, names: Sequence[str], *, numbered: bool) -> None:
        limit = PULLED_PARTITIONS_MAX if self._pulls else PARTITIONS_MAX
        if len(names) > limit:
            self._exchange.refused(pb.NotAllowedError, f"at most {limit} partitions")
            return
        self._is_numbered = numbered
        self._shares = [
            PartitionConsumer(each, self._start, earliest=self._earliest) for each in names
        ]
        if self._dead_letters is not None and self._endpoint.is_of_several:
            self._dead_letters.topics = self._shares
        for number in range(len(names)):
            self._attach(number)
        if not names:
            self._exchange.attached()

    def grow(self, names: Sequence[str]) -> None:
        """What was stored in a new partition before is read, too: it came after the consumer."""
        earliest = self._earliest or not self._endpoint.pattern
        limit = PULLED_PARTITIONS_MAX if self._pulls else PARTITIONS_MAX
        for name in names[: limit - len(self._shares)]:
            start = None if self._start is None else (*EARLIEST, -1)
            self._shares.append(PartitionConsumer(name, start, earliest=earliest))
            self._attach(len(self._shares) - 1)

    def _attach(self, number: int) -> None:
        share = self._shares[number]
        share.ready, share.outstanding, share.returned = False, 0, 0
        said: dict[str, Any] = {"consumer_name": self._name}
        if share.start is not None:
            ledger_id, entry_id, _ = share.start
            said["start_message_id"] = pb.MessageIdData(ledger_id=ledger_id, entry_id=entry_id)
        self._exchange.command(
            Type.SUBSCRIBE,
            pb.CommandSubscribe(
                topic=share.topic,
                subscription=self._subscription,
                sub_type=pb.CommandSubscribe.SubType.Name(self._type),
                consumer_id=number,
                request_id=number + 1,
                durable=self._durable and not self._reads,
                priority_level=self._priority,
                force_topic_creation=not self._endpoint.pattern,
                initial_position=INITIAL[share.earliest].upper(),
                **said,
            ),
        )

    def _attached(self, request_id: int) -> None:
        if self._unsubscribing or not 0 < request_id <= len(self._shares):
            return
        share = self._shares[request_id - 1]
        share.ready, share.since = True, self._exchange.now_ms()
        share.earliest = self._earliest
        if not self._pulls:
            share.returned = max(self._queue // len(self._shares), 1)
        elif self._is_numbered:
            share.returned = 1
        else:
            share.returned = self._credit
        self._grant(request_id - 1)
        if all(each.ready for each in self._shares):
            self._exchange.attached()

    def _grant(self, number: int) -> None:
        share = self._shares[number]
        if share.ready and share.returned:
            flow = pb.CommandFlow(consumer_id=number, message_permits=share.returned)
            share.returned = 0
            self._exchange.command(Type.FLOW, flow)

    # -- the broker ---------------------------------------------------------------------------

    def hear(self, command: pb.BaseCommand, tail: bytes) -> None:
        kind = command.type
        if kind == Type.MESSAGE:
            self._receive(command.message, tail)
        elif self._dead_letters is not None and self._dead_letters.hear(command):
            self._settle_dead_letters()
        elif kind == Type.SUCCESS:
            self._attached(command.success.request_id)
        elif kind == Type.CLOSE_CONSUMER:
            self._closed(command.close_consumer.consumer_id)
        elif kind == Type.REACHED_END_OF_TOPIC:
            self._shares[command.reached_end_of_topic.consumer_id].ended = True
        elif kind == Type.ERROR:
            self._fail(command.error)

    def _fail(self, error: pb.CommandError) -> None:
        """What a pattern had matched may be gone by now; everything else ends the WebSocket."""
        number = error.request_id - 1
        if self._endpoint.pattern and error.error in GONE and number < len(self._shares):
            self._shares[number].ready = self._shares[number].ended = True
            if all(each.ready for each in self._shares):
                self._exchange.attached()
        else:
            self._exchange.refused(error.error, error.message)

    def _closed(self, number: int) -> None:
        """The broker has closed a consumer (an unload): attach again. What was delivered will be
        delivered again.
        """
        share = self._shares[number]
        if share.ready and self._exchange.now_ms() >= share.since + STEADY_MS:
            share.attempts = 0
        share.attempts += 1
        partition = self._partition(number)
        self._held = OrderedDict(each for each in self._held.items() if each[0][0] != partition)
        self._timeouts = OrderedDict(
            each for each in self._timeouts.items() if each[0].partition != partition
        )
        self._due = LazyQueue(each for each in self._due if each[1].partition != partition)
        self._undecoded = LazyQueue(
            each for each in self._undecoded if each[0].consumer_id != number
        )
        self._waiting = LazyQueue(each for each in self._waiting if each[0].partition != partition)
        self._held_bytes = sum(len(tail) for _, tail in self._undecoded)
        self._held_bytes += sum(map(contents.size_of, self._waiting))
        self._count()
        if self._dead_letters is not None:
            self._dead_letters.forget(partition)
        if share.attempts > ATTEMPTS_MAX:
            self._exchange.close(CLOSED_BY_BROKER, "the broker closes the consumer")
        elif not self._unsubscribing:
            self._attach(number)

    def _partition(self, number: int) -> int:
        return number if self._is_numbered else -1

    def _receive(self, message: pb.CommandMessage, tail: bytes) -> None:
        self._shares[message.consumer_id].attempts = 0
        self._undecoded.append((message, tail))
        self._held_bytes += len(tail)
        self._deliver()

    def _deliver(self) -> None:
        """Send what waits, as far as the peer has permitted it."""
        while not self._pulls or self._credit:
            if len(self._timeouts) >= HELD_MAX:
                break  # until some are acknowledged, or delivered again
            if self._waiting:
                self._deliver_one(self._waiting.popleft())
            elif not self._undecoded or not self._decode(*self._undecoded.popleft()):
                break
        self.settle()
        self._count()

    def _count(self) -> None:
        """Have what waits counted; the most of all closes its WebSocket if it is too much."""
        self._all_held.count(self, self._held_bytes)

    def crowded_out(self) -> None:
        self._drop()
        reason = "too much waits for clients that permit nothing: this one holds the most"
        self._exchange.close(TRY_AGAIN_LATER, reason)

    def over(self) -> None:
        self._drop()
        self._count()

    def _drop(self) -> None:
        self._undecoded.clear()
        self._waiting.clear()
        self._held_bytes = 0

    def _decode(self, message: pb.CommandMessage, tail: bytes) -> bool:
        """Take an entry apart; False if the WebSocket is closed instead."""
        self._held_bytes -= len(tail)
        number = message.consumer_id
        at = Position(
            self._partition(number), message.message_id.ledger_id, message.message_id.entry_id
        )
        acked = ~_mask_of(message.ack_set) if message.ack_set else 0
        dead = self._dead_letters
        try:
            if dead is not None and message.redelivery_count > dead.count_max:
                dead.add(tail, at, acked)
                return True
            found = list(
                contents.received(tail, at, message.redelivery_count, acked, self._size_max)
            )
        except contents.TooLong as error:
            where = contents.position_text(at)
            reason = f"a message is too long, decompressed: {error}, {where}"
            self._exchange.close(CLOSED_BY_BROKER, reason)
            return False
        except Corrupted:
            # passed over, as Java's client does with what it cannot read
            self._acknowledge(number, at, validation_error=pb.CommandAck.BATCH_DESERIALIZE_ERROR)
            self._shares[number].returned += 1
            return True
        self._hold(at, found)
        start = self._shares[number].start
        if start is not None and all(_is_before(each.position, start) for each in found):
            self._acknowledge_read(number, at)
        for each in found:
            if start is not None and _is_before(each.position, start):
                # the place where a reader begins, which it has seen
                self._shares[number].returned += 1
            else:
                self._waiting.append(each)
                self._held_bytes += contents.size_of(each)
        return True

    def _hold(self, at: Position, found: list[contents.ReceivedMessage]) -> None:
        """Remember which messages of a batch are not acknowledged."""
        if not found or found[0].position.batch_index < 0 or self._reads:
            return
        mask = 0
        for each in found:
            mask |= 1 << each.position.batch_index
        self._held[at[:3]] = mask
        if len(self._held) > HELD_MAX:  # its messages are then acknowledged one by one
            self._held.popitem(last=False)

    def _deliver_one(self, message: contents.ReceivedMessage) -> None:
        at, document = message
        self._held_bytes -= contents.size_of(message)
        share = self._shares[max(at.partition, 0)]
        if self._pulls:
            self._credit -= 1
            if self._is_numbered:
                share.returned += 1
        share.outstanding += 1
        if self._reads:
            share.start = at[1:4]
            if at.batch_index + 1 >= at.batch_size:
                self._acknowledge_read(max(at.partition, 0), at)
        if self._timeout_ms:
            self._timeouts[at] = self._exchange.now_ms() + self._timeout_ms
            self._wake()
        self._exchange.text(document)

    def settle(self) -> None:
        for number, share in enumerate(self._shares):
            if share.returned:
                self._grant(number)

    # -- the peer -----------------------------------------------------------------------------

    def say(self, text: str) -> None:
        try:
            said = command(text)
            self._act(said)
        except (Invalid, msgspec.MsgspecError):
            self._exchange.close(NOT_UNDERSTOOD, "Failed to de-serialize from JSON")

    def _act(self, said: ConsumerCommand) -> None:
        if said.type == "isEndOfTopic":
            self._exchange.text(EndOfTopicAnswer(all(share.ended for share in self._shares)))
        elif said.type == "permit":
            self._permit(said.permit_messages)
        elif said.type == "unsubscribe" and not self._reads:
            self._unsubscribing = True
            for number in range(len(self._shares)):
                self._exchange.command(
                    Type.UNSUBSCRIBE,
                    pb.CommandUnsubscribe(
                        consumer_id=number, request_id=len(self._shares) + number + 1
                    ),
                )
        else:
            self._answer(said, negative=said.type == "negativeAcknowledge")

    def _permit(self, count: int | None) -> None:
        if count is None or count > PERMITS_MAX - self._credit:
            raise Invalid("permitMessages is missing, or too much")
        if self._pulls and count > 0:
            self._credit += count
            if not self._is_numbered:
                self._shares[0].returned += count
            self._deliver()

    def _answer(self, said: ConsumerCommand, *, negative: bool) -> None:
        """An acknowledgement of one message, of either kind."""
        at = position_of(said.message_id or "")
        number = at.partition if self._is_numbered else 0
        if not 0 <= number < len(self._shares):
            raise Invalid("the message id is of another topic")
        at = at._replace(partition=self._partition(number))
        self._timeouts.pop(at, None)
        if negative and not self._reads:
            self._redeliver_later(at)
        elif not self._reads:
            self._acknowledge_one(number, at)
        self._return_permit(number)

    def _return_permit(self, number: int) -> None:
        share = self._shares[number]
        if share.outstanding:
            share.outstanding -= 1
            if not self._pulls:
                share.returned += 1

    def _acknowledge_read(self, number: int, at: Position) -> None:
        """What a reader was sent is acknowledged, as by readers of Java's client: the broker tells
        the end of a topic when everything is.
        """
        self._acknowledge(number, at, cumulative=True)

    def _acknowledge_one(self, number: int, at: Position) -> None:
        if at.batch_index < 0:
            self._acknowledge(number, at)
            return
        size = max(min(at.batch_size, contents.BATCH_MAX), at.batch_index + 1)
        left = self._held.get(at[:3], (1 << size) - 1) & ~(1 << at.batch_index)
        if left:
            if at[:3] in self._held:
                self._held[at[:3]] = left
            self._acknowledge(number, at, left=left, size=size)
        else:
            self._held.pop(at[:3], None)
            self._acknowledge(number, at)

    def _acknowledge(
        self,
        number: int,
        at: Position,
        *,
        cumulative: bool = False,
        left: int = 0,
        size: int = 0,
        validation_error: pb.CommandAck.ValidationError | None = None,
    ) -> None:
        data = pb.MessageIdData(ledger_id=at.ledger_id, entry_id=at.entry_id)
        if left:
            data.ack_set.extend(_words_of(left, size))
            data.batch_size = size
        kind = pb.CommandAck.CUMULATIVE if cumulative else pb.CommandAck.INDIVIDUAL
        said = pb.CommandAck(consumer_id=number, ack_type=kind, message_id=[data])
        if validation_error is not None:
            said.validation_error = validation_error
        self._exchange.command(Type.ACK, said)

    # -- what is delivered again --------------------------------------------------------------

    def _redeliver_later(self, at: Position) -> None:
        if not self._nack_ms:
            self._redeliver([at])
            return
        self._due.append((self._exchange.now_ms() + self._nack_ms, at))
        if len(self._due) > HELD_MAX:
            self._redeliver([self._due.popleft()[1]])
        self._wake()

    def _wake(self) -> None:
        """Be woken when the first message is due."""
        times = [self._due.first[0]] if self._due else []
        if self._timeouts:
            times.append(next(iter(self._timeouts.values())))
        if times:
            self._exchange.wake_in(max(min(times) - self._exchange.now_ms(), 0) + TICK_MS)

    def woken(self) -> None:
        now = self._exchange.now_ms()
        due: list[Position] = []
        while self._due and self._due.first[0] <= now:
            due.append(self._due.popleft()[1])
        while self._timeouts and next(iter(self._timeouts.values())) <= now:
            at, _ = self._timeouts.popitem(last=False)
            due.append(at)
            self._return_permit(max(at.partition, 0))
        self._redeliver(due)
        self.settle()
        self._wake()

    def _redeliver(self, due: list[Position]) -> None:
        of_each: dict[int, dict[tuple[int, int], None]] = {}
        for at in due:
            of_each.setdefault(max(at.partition, 0), {})[at.ledger_id, at.entry_id] = None
        for number, entries in of_each.items():
            said = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=number)
            for ledger_id, entry_id in entries:
                said.message_ids.add(ledger_id=ledger_id, entry_id=entry_id)
            self._exchange.command(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, said)

    def _settle_dead_letters(self) -> None:
        """Acknowledge entries whose messages are stored as dead letters."""
        assert self._dead_letters is not None
        for at, count in self._dead_letters.take_stored():
            number = max(at.partition, 0)
            self._acknowledge(number, at)
            self._held.pop(at[:3], None)
            self._shares[number].returned += count
        put_off = self._dead_letters.take_put_off()
        for at, count in put_off:
            self._shares[max(at.partition, 0)].returned += count
        self._redeliver([at for at, _ in put_off])
        self.settle()


def _is_before(at: Position, start: Start) -> bool:
    """Whether it is the message at the start, or one before it in its batch."""
    return at[1:3] == start[:2] and (start[2] < 0 or at.batch_index <= start[2])


def _start_of(text: str) -> Start:
    """Where a reader begins."""
    if text in ("", "latest"):
        return (*LATEST, -1)
    if text == "earliest":
        return (*EARLIEST, -1)
    try:
        at = position_of(text)
    except Invalid as error:
        reason = "Failed to create producer/consumer: Invalid messageId value"
        raise RefusedRequest(400, reason) from error
    return at.ledger_id, at.entry_id, at.batch_index


def _mask_of(words: Any) -> int:
    """The mask of an ack set, of words with a sign."""
    found = 0
    for number, word in enumerate(words):
        found |= (word & UNASKED) << 64 * number
    return found


def _words_of(mask: int, size: int) -> list[int]:
    words = []
    for number in range((size + 63) // 64):
        word = mask >> 64 * number & UNASKED
        words.append(word - (1 << 64) if word >> 63 else word)
    return words
