"""Producers: attach (in four modes), publish, leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from core.entry.pulsar_metadata import has_encryption_keys
from core.errors import (
    BrokerError,
    ChecksumMismatch,
    Invalid,
    NotAllowed,
    NotReady,
    ProducerBusy,
    Unavailable,
)
from core.ledger.chain import START, Position
from core.topic import checks, deduplication
from core.topic.deduplication import Verdict
from core.topic.producer import AccessMode, Producer, ProducerRequest
from core.topic.topic import Topic
from core.topic.volatile import VolatileTopic
from wire.pulsar import events, hot, replies
from wire.pulsar.errors import code_of, spares_connection
from wire.pulsar.session import liveness

if TYPE_CHECKING:
    from wire.pulsar.session.session import PulsarSession

MODES: Final[Mapping[events.AccessMode, AccessMode]] = {
    events.AccessMode.SHARED: AccessMode.SHARED,
    events.AccessMode.EXCLUSIVE: AccessMode.EXCLUSIVE,
    events.AccessMode.WAIT_FOR_EXCLUSIVE: AccessMode.WAIT_FOR_EXCLUSIVE,
    events.AccessMode.EXCLUSIVE_WITH_FENCING: AccessMode.EXCLUSIVE_WITH_FENCING,
}


PRODUCER_LEFT_SECONDS: Final = 30.0
"""So long after it was closed a producer's messages are overlooked; then they are a mistake."""
PRODUCERS_LEFT_MAX: Final = 1_000
"""Remembered per connection, the last ones."""


class Attached:
    """A producer of this connection: the protocol's side of a core `Producer`.

    Runs are stored in the order they came, so what waits for storage is a plain count; a request to
    close is answered when it is down to nothing.
    """

    __slots__ = (
        "closing",
        "encrypted_only",
        "epoch",
        "id",
        "later",
        "producer",
        "ready",
        "refused_some",
        "request_id",
        "runs_done",
        "runs_sent",
        "session",
        "topic",
    )

    def __init__(
        self,
        session: PulsarSession,
        event: events.Producer,
        topic: Topic | VolatileTopic,
    ) -> None:
        self.session = session
        self.id = event.producer_id
        self.request_id = event.request_id
        self.topic = topic
        self.producer: Producer
        self.encrypted_only = topic.policies.encryption_required
        self.ready = False
        """False while it waits for the topic to be its own."""
        self.epoch: int | None = None
        self.refused_some = False
        """A message was refused and the producer closed: later ones get no receipt, since clients
        send them all again."""
        self.runs_sent = self.runs_done = 0
        """Runs given to the topic, and those of them that are stored or failed."""
        self.later: deque[tuple[int, bytes, BrokerError | None]] = deque()
        """Messages refused each by itself, or (None) stored before: after how many runs that is
        said, of which, and why."""
        self.closing: int | None = None
        """The request to answer when nothing waits any more."""

    # -- what the core tells ------------------------------------------------------------------

    def granted(self, epoch: int | None) -> None:
        """The topic is this producer's: now, or after having waited for it."""
        self.ready, self.epoch = True, epoch
        if self.session.producers.get(self.id) is self:
            self.say_granted(self.request_id)

    def say_granted(self, request_id: int) -> None:
        """That it may publish, or that it still has to wait."""
        self.session.reply(
            replies.producer_success(
                request_id,
                self.producer.name,
                self.topic.last_sequence_of(self.producer.name),
                topic_epoch=self.epoch,
                ready=self.ready,
            )
        )

    def refused(self, error: BrokerError) -> None:
        """It waited in vain."""
        self.forget()
        self.session.reply(replies.error(self.request_id, code_of(error), str(error)))

    def closed_by_broker(self) -> None:
        self.forget()
        self.session.reply(replies.close_producer(self.id))

    def forget(self) -> None:
        """The session has it no more; what is on its way from the client is not a mistake."""
        session = self.session
        if session.producers.get(self.id) is self:
            del session.producers[self.id]
            left = session.producers_left
            while len(left) >= PRODUCERS_LEFT_MAX:
                del left[next(iter(left))]
            left.pop(self.id, None)
            left[self.id] = session.broker.clock.monotonic()

    # -- what happens to a run ----------------------------------------------------------------

    def publish(self, run: events.Sends, highest: int | None = None) -> None:
        """Hand a run to the topic; with `highest`, one that is found to be sent for the first time:
        see `Topic.publish_once`.
        """
        messages = len(run.payloads)
        self.runs_sent += 1
        size = sum(map(len, run.payloads))
        session = self.session
        session.publishes_wait(messages, size)
        producer = self.producer
        counted = messages if run.counts is None else sum(run.counts)
        producer.messages_in += counted
        producer.bytes_in += size
        of_topic, of_broker = self.topic.publish_throttle, session.broker.publish_throttle
        if of_topic is not None or of_broker is not None:
            session.pay((of_topic, of_broker), counted, size)
        if run.chunks:
            producer.chunks_in += messages

        def stored(result: Position | BrokerError) -> None:
            self.runs_done += 1
            session.publishes_done(messages, size)
            if isinstance(result, tuple):
                self._receipt(run, result)
            else:
                self._refuse(run, result)
            if self.later:
                self._say_later()
            if self.closing is not None and not self.waits:
                session.reply(replies.success(self.closing))

        if highest is None or not isinstance(self.topic, Topic):
            self.topic.publish(run.payloads, run.counts, stored)
        else:
            self.topic.publish_once(producer.name, highest, run.payloads, run.counts, stored)

    @property
    def waits(self) -> bool:
        """Something it sent is on its way to storage."""
        return self.runs_done < self.runs_sent

    def publish_checked(self, run: events.Sends, now_ms: int) -> None:
        """As `publish`, but for messages that the topic's policies refuse each by itself, and for
        those that are stored already.

        Each is told when what came before it has its receipt: clients look for it at the head of
        what they wait for.
        """
        found: dict[int, BrokerError | None] = {}
        if self.topic.policies.checks_messages:
            found.update(checks.refused(run.payloads, self.topic.policies, now_ms))
        sightings = self._sightings(run, found)
        start = 0
        for at in [*sorted(found), len(run.payloads)]:
            if at > start:
                self.publish(part_of(run, start, at), max(sightings[start:at], default=None))
            if at in found:
                reason = found[at]
                if isinstance(reason, Unavailable):
                    self._refuse(part_of(run, at, len(run.payloads)), reason)
                    return
                self.later.append((self.runs_sent, run.sequences[at], reason))
            start = at + 1
        self._say_later()

    def _sightings(self, run: events.Sends, found: dict[int, BrokerError | None]) -> Sequence[int]:
        """The sequence id that each message makes known, -1 for none; what was seen before joins
        `found`, as None if it is stored. Nothing where duplicates do not matter.
        """
        notes = self.topic.deduplication if isinstance(self.topic, Topic) else None
        if notes is None:
            return ()
        name, pushed = self.producer.name, -1
        sightings = []
        for at, echo in enumerate(run.sequences):
            first, last = hot.sequence_of(echo)
            highest = max(first, last)
            whole = not run.chunks or deduplication.counts(run.payloads[at])
            sightings.append(highest if whole else -1)
            verdict = notes.books.judge(name, highest)
            if last and last < first:
                found.setdefault(at, Invalid("the highest sequence id is below the first"))
            elif verdict is Verdict.DUPLICATE or highest <= pushed:
                found.setdefault(at, None)
            elif verdict is Verdict.UNKNOWN and whole:
                found.setdefault(at, NotReady("it is not known yet whether it is stored"))
            elif whole and at not in found:
                pushed = highest
        return sightings

    def _say_later(self) -> None:
        """What had to wait for the receipts of what came before: refusals, and duplicates."""
        while self.later and self.later[0][0] <= self.runs_done:
            _after, echo, error = self.later.popleft()
            if self.refused_some or self.session.gone:
                continue
            if error is None:
                self.session.wire.receipts_without_id(self.id, [echo])
                self.session.connection.touch()
            else:
                refusal = replies.send_error(self.id, hot.sequence_of(echo)[0], error)
                self.session.reply(refusal)

    def _receipt(self, run: events.Sends, first: Position) -> None:
        session = self.session
        if not session.gone and not self.refused_some:
            if first[0] >= 0:
                session.wire.receipts(self.id, run.sequences, *first)
            else:
                session.wire.receipts_without_id(self.id, run.sequences)
            session.connection.touch()

    def _refuse(self, run: events.Sends, error: BrokerError) -> None:
        """Tell why. Where that makes clients drop the connection, nothing behind it is answered:
        they attach again and send again what has no receipt. Where we merely let go of the topic,
        closing the producer does the same and spares the connection.
        """
        session = self.session
        if session.gone or self.refused_some:
            return
        if spares_connection(error):
            for echo in run.sequences:
                session.reply(replies.send_error(self.id, hot.sequence_of(echo)[0], error))
            return
        self.refused_some = True
        if session.producers.get(self.id) is not self:
            return  # it is closed already, by whichever side
        self.forget()
        self.topic.detach_producer(self.producer)
        if isinstance(error, Unavailable):
            session.reply(replies.close_producer(self.id))
        else:
            first, _highest = hot.sequence_of(run.sequences[0])
            session.reply(replies.send_error(self.id, first, error))


# -- attaching -------------------------------------------------------------------------------


def on_producer(session: PulsarSession, event: events.Producer) -> None:
    """Attach a producer, once: a repeated request is answered again, not done again.

    The client may give up meanwhile: see `subscribe.on_subscribe`.
    """
    producer_id, coming = event.producer_id, session.producers_coming
    present = session.producers.get(producer_id)
    if present is not None:
        present.say_granted(event.request_id)
        return
    if producer_id in coming:
        raise NotReady("the producer is already being attached on this connection")
    coming[producer_id] = event.request_id
    session.wait_for(_produce, event)


async def _produce(session: PulsarSession, event: events.Producer) -> None:
    producer_id, coming = event.producer_id, session.producers_coming
    try:
        topic = await session.topic(event.topic)
        await _prepare(event, topic)
        name = event.name or await session.broker.catalog.new_producer_name()
        if coming.get(producer_id) == event.request_id:
            del coming[producer_id]
            await _attach(session, event, topic, name)
    finally:
        if coming.get(producer_id) == event.request_id:
            del coming[producer_id]


async def _prepare(event: events.Producer, topic: Topic | VolatileTopic) -> None:
    """What must be so before a producer may attach."""
    topic.check_producer()
    if topic.policies.encryption_required and not event.encrypted:
        raise Invalid(f"Encryption is required in {topic.name}")
    if event.transactional:
        raise NotAllowed("Transactions are not enabled.")
    if event.initial_subscription and isinstance(topic, Topic):
        create = topic.policies.auto_subscription_creation
        if not create and event.initial_subscription not in topic.subscriptions:
            raise NotAllowed("subscriptions are not created by being asked for here")
        await topic.subscription(event.initial_subscription, create=create, start=START)


async def _attach(
    session: PulsarSession, event: events.Producer, topic: Topic | VolatileTopic, name: str
) -> None:
    """Into the session first: whoever detaches it while the topic is being taken finds it there."""
    attached = Attached(session, event, topic)
    request = ProducerRequest(
        name=name,
        name_is_users=bool(event.name) and event.name_is_users,
        epoch=event.epoch,
        mode=MODES[event.access_mode],
        topic_epoch=event.topic_epoch,
        metadata=event.metadata,
        address=session.peer,
        client_version=session.peer_version,
    )
    attached.producer = Producer(event.producer_id, request, attached, topic.env.clock.wall_ms())
    session.producers[event.producer_id] = attached
    session.connection.will_write()
    try:
        granted = await _take_place(session, attached)
    except BrokerError:
        attached.forget()
        raise
    if not granted:
        attached.say_granted(event.request_id)


async def _take_place(session: PulsarSession, attached: Attached) -> bool:
    """Attach to the topic; if the name is taken, once more when who has it turns out to be dead."""
    topic, producer = attached.topic, attached.producer
    try:
        return await topic.attach_producer(producer)
    except ProducerBusy:
        holder = topic.producers.named(producer.name)
        sink = holder.sink if holder is not None else None
        if not isinstance(sink, Attached) or not await liveness.is_gone(sink.session, session):
            raise
    if session.producers.get(attached.id) is not attached:
        raise NotReady("the producer was closed while it was being attached")
    return await topic.attach_producer(producer)


# -- publishing ------------------------------------------------------------------------------


def on_sends(session: PulsarSession, event: events.Sends) -> None:
    attached = session.producers.get(event.producer_id)
    if attached is None or not attached.ready:
        _check_left(session, event.producer_id)
        return
    if event.txn is not None:
        _refuse_each(session, event, NotAllowed("Transactions are not enabled."))
    elif attached.encrypted_only and not _all_encrypted(event.payloads):
        _refuse_each(session, event, Invalid("Messages must be encrypted"))
    elif attached.topic.looks_at_messages:
        attached.publish_checked(event, session.broker.clock.wall_ms())
    else:
        attached.publish(event)


def part_of(run: events.Sends, start: int, stop: int) -> events.Sends:
    """Some messages of a run, as a run."""
    if start == 0 and stop == len(run.payloads):
        return run
    return msgspec.structs.replace(
        run,
        payloads=run.payloads[start:stop],
        sequences=run.sequences[start:stop],
        counts=None if run.counts is None else run.counts[start:stop],
    )


def _check_left(session: PulsarSession, producer_id: int) -> None:
    """Messages of a producer closed a moment ago were on their way: they will come again."""
    left_at = session.producers_left.get(producer_id)
    if left_at is None or session.broker.clock.monotonic() - left_at > PRODUCER_LEFT_SECONDS:
        raise Invalid("a message of a producer that is not attached")


def _all_encrypted(payloads: list[bytes]) -> bool:
    return all(has_encryption_keys(payload) for payload in payloads)


def _refuse_each(session: PulsarSession, run: events.Sends, error: BrokerError) -> None:
    for echo in run.sequences:
        session.reply(replies.send_error(run.producer_id, hot.sequence_of(echo)[0], error))


def on_bad_checksum(session: PulsarSession, event: events.BadChecksum) -> None:
    error = ChecksumMismatch("the message did not arrive as it was sent")
    session.reply(replies.send_error(event.producer_id, event.sequence_id, error))


# -- leaving ---------------------------------------------------------------------------------


def on_close_producer(session: PulsarSession, event: events.CloseProducer) -> None:
    """Answered when everything sent before is stored."""
    session.producers_coming.pop(event.producer_id, None)
    attached = session.producers.get(event.producer_id)
    if attached is None:
        session.reply(replies.success(event.request_id))
        return
    attached.forget()
    attached.topic.detach_producer(attached.producer)
    if attached.waits:
        attached.closing = event.request_id
    else:
        session.reply(replies.success(event.request_id))


def detach_all(session: PulsarSession) -> None:
    """The connection is gone."""
    session.producers_coming.clear()
    producers, session.producers = session.producers, {}
    for attached in producers.values():
        attached.topic.detach_producer(attached.producer)


HANDLERS: Final[Mapping[type, Any]] = {
    events.Producer: on_producer,
    events.Sends: on_sends,
    events.BadChecksum: on_bad_checksum,
    events.CloseProducer: on_close_producer,
}
