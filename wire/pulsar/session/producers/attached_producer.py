"""A producer at work: runs go to its topic, and the result of each message is sent in order.

Runs are stored in their order of arrival, so two counters tell which of them wait for a receipt. A
message that is not stored (it is refused by itself, or is a duplicate) is answered after the
receipts of the runs before it: clients match answers with the head of their pending queue, and the
C++ client closes the connection on a mismatch (`ackReceived` in `ProducerImpl.cc`).

Invariant: a producer's messages are answered in order, once each; none is answered after an error
that makes the client send all pending messages again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from magnetar.core.kernel.errors import (
    BrokerError,
    Invalid,
    NotAllowed,
    NotReady,
    Unauthorized,
    Unavailable,
)
from magnetar.core.ledger.log.appends import Appended
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.fenced_appends import SplitPosition, stretches_of
from magnetar.core.topic import restrictions
from magnetar.core.topic.publishing.producer import Producer
from magnetar.core.topic.publishing.sequences import Verdict, counts
from magnetar.core.topic.topic import Topic
from magnetar.wire.pulsar import events, hot, replies
from magnetar.wire.pulsar.errors import code_of, spares_connection

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.producers.produce import ConnectionProducers

MALFORMED: Final = NotAllowed("What is in a message is not what its metadata says")
"""Clients fail this message only."""


class AttachedProducer:
    """A producer of this connection: the protocol's side of a core `Producer`."""

    __slots__ = (
        "client",
        "closing",
        "coming",
        "deferred",
        "encrypted_only",
        "epoch",
        "id",
        "producer",
        "producers",
        "ready",
        "refusal",
        "refused_some",
        "request_id",
        "runs_done",
        "runs_sent",
        "schema_version",
        "topic",
    )

    def __init__(
        self,
        producers: ConnectionProducers,
        event: events.Producer,
        topic: Topic,
        schema_version: bytes = b"",
    ) -> None:
        self.producers = producers
        self.client = producers.client
        self.id = event.producer_id
        self.request_id = event.request_id
        self.topic = topic
        self.schema_version = schema_version
        self.producer: Producer
        self.encrypted_only = topic.policies.encryption_required
        self.ready = False
        """False while it waits for exclusive access (`WaitForExclusive`)."""
        self.coming = True
        """The topic has not accepted or refused it yet, and its request is not answered."""
        self.refusal: BrokerError | None = None
        """The refusal, if it was refused while `coming`."""
        self.epoch: int | None = None
        self.refused_some = False
        """A message was refused and the producer closed. Later messages get no receipt, since
        clients send them again."""
        self.runs_sent = self.runs_done = 0
        """The number of runs published, and of those that are stored or have failed."""
        self.deferred: deque[tuple[int, bytes, BrokerError | None]] = deque()
        """Answers that wait for receipts: the number of runs before the message, its sequence id,
        and its refusal, or None for a duplicate."""
        self.closing: int | None = None
        """The id of the CLOSE_PRODUCER to answer once nothing waits."""

    # -- callbacks of the topic ---------------------------------------------------------------

    def granted(self, epoch: int | None) -> None:
        """It may publish: at once, or after it has waited for exclusive access."""
        self.ready, self.epoch = True, epoch
        if self.producers.has(self):
            self.reply_success(self.request_id)

    def reply_success(self, request_id: int) -> None:
        """Answer PRODUCER_SUCCESS: it may publish, or has to wait."""
        self.client.reply(
            replies.producer_success(
                request_id,
                self.producer.name,
                self.topic.last_sequence_of(self.producer.name),
                self.schema_version,
                topic_epoch=self.epoch,
                ready=self.ready,
            )
        )

    def refused(self, error: BrokerError) -> None:
        """The topic refuses it, at once or after it has waited."""
        if self.coming:
            self.attach_failed(error)
            return
        self.forget()
        self.client.reply(replies.error(self.request_id, code_of(error), str(error)))

    def closed_by_broker(self) -> None:
        if self.coming:
            self.attach_failed(NotReady("the producer was closed while it was being attached"))
            return
        self.forget()
        self.client.reply(replies.close_producer(self.id))

    def lost_right(self) -> None:
        """Its client may not publish any more. It attaches again, and hears that then
        (`Producer.checkPermissionsAsync` of 4.2).
        """
        if self.coming:
            self.attach_failed(Unauthorized("Client is not authorized to Produce"))
        else:
            self.closed_by_broker()

    def attach_failed(self, error: BrokerError) -> None:
        """It is not attached. Unless the client has closed it, its request is still pending."""
        if self.producers.has(self):
            self.producers.expect_again(self)
        self.forget()
        self.refusal = error

    def accepted(self) -> BrokerError | None:
        """The topic has answered; returns the refusal of the meantime, if there was one."""
        self.coming = False
        return self.refusal

    def forget(self) -> None:
        """Remove it from its connection; messages under way from the client are ignored."""
        self.producers.forget(self)

    def close_when_stored(self, request_id: int) -> None:
        """Answer CLOSE_PRODUCER once all earlier messages are stored."""
        if self.waits:
            self.closing = request_id
        else:
            self.client.reply(replies.success(request_id))

    # -- publishing ---------------------------------------------------------------------------

    def publish(self, run: events.Sends, highest: int | None = None) -> None:
        """Publish a run; `highest` is for `PersistentTopic.publish_once`."""
        messages, size = len(run.payloads), run.size
        self.runs_sent += 1
        producers = self.producers
        producers.limit.begin(messages, size)
        producer = self.producer
        counted = messages if run.counts is None else sum(run.counts)
        producer.messages_in += counted
        producer.bytes_in += size
        throttles = self.topic.throttles.publish
        if throttles:
            producers.limit.spend(throttles, counted, size)
        if run.chunks:
            producer.chunks_in += messages

        def stored(result: Position | BrokerError) -> None:
            self.runs_done += 1
            producers.limit.end(len(run.payloads), run.size)
            if isinstance(result, tuple):
                self._receipt(run, result)
            else:
                self._refuse(run, result)
            if self.deferred:
                self._reply_deferred()
            if self.closing is not None and not self.waits:
                self.client.reply(replies.success(self.closing))

        done: Appended = stored
        if run.txn is not None and self.topic.stored is not None:
            done = self.topic.stored.in_transaction(run.txn, stored)
        if highest is None:
            self.topic.publish(run.payloads, run.counts, done)
        else:
            self.topic.publish_once(producer.name, highest, run.payloads, run.counts, done)

    @property
    def waits(self) -> bool:
        """Whether a run is on its way to storage."""
        return self.runs_done < self.runs_sent

    def publish_checked(
        self, run: events.Sends, now_ms: int, malformed: Sequence[int] = ()
    ) -> None:
        """Publish a run except for messages that are malformed, refused by a policy, or
        duplicates. These are answered after the receipts of the messages before them.
        """
        found: dict[int, BrokerError | None] = dict.fromkeys(malformed, MALFORMED)
        if self.topic.looks_for_transactions:
            found.update(dict.fromkeys(restrictions.strays(run.payloads, run.txn), MALFORMED))
        if self.topic.policies.checks_messages:
            found.update(restrictions.refused(run.payloads, self.topic.policies, now_ms))
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
                self.deferred.append((self.runs_sent, run.sequences[at], reason))
            start = at + 1
        self._reply_deferred()

    def refuse_each(self, run: events.Sends, error: BrokerError) -> None:
        """Refuse every message of a run, after the receipts of the messages before it."""
        self.deferred.extend((self.runs_sent, echo, error) for echo in run.sequences)
        self._reply_deferred()

    def _sightings(self, run: events.Sends, found: dict[int, BrokerError | None]) -> Sequence[int]:
        """The sequence id that each message adds, -1 for none. Duplicates join `found`, as None if
        they are stored. Empty without deduplication.
        """
        sequences = self.topic.sequences
        if sequences is None:
            return ()
        name, pushed = self.producer.name, -1
        sightings = []
        for at, echo in enumerate(run.sequences):
            first, last = hot.sequence_of(echo)
            highest = max(first, last)
            whole = not run.chunks or counts(run.payloads[at])
            sightings.append(highest if whole else -1)
            verdict = sequences.judge(name, highest)
            if last and last < first:
                found.setdefault(at, Invalid("the highest sequence id is below the first"))
            elif verdict is Verdict.DUPLICATE or highest <= pushed:
                found.setdefault(at, None)
            elif verdict is Verdict.UNKNOWN and whole:
                found.setdefault(at, NotReady("it is not known yet whether it is stored"))
            elif whole and at not in found:
                pushed = highest
        return sightings

    def _reply_deferred(self) -> None:
        """Send the refusals, and the receipts of duplicates, whose predecessors are answered."""
        while self.deferred and self.deferred[0][0] <= self.runs_done:
            _after, echo, error = self.deferred.popleft()
            if self.refused_some or self.client.gone:
                continue
            if error is None:
                self.client.wire.receipts_without_id(self.id, [echo])
                self.client.connection.touch()
            else:
                refusal = replies.send_error(self.id, hot.sequence_of(echo)[0], error)
                self.client.reply(refusal)

    def _receipt(self, run: events.Sends, first: Position) -> None:
        client = self.client
        if not client.gone and not self.refused_some:
            if isinstance(first, SplitPosition):
                at = 0
                for entries, position in stretches_of(first, len(run.sequences)):
                    client.wire.receipts(self.id, run.sequences[at : at + entries], *position)
                    at += entries
            elif first[0] >= 0:
                client.wire.receipts(self.id, run.sequences, *first)
            else:
                client.wire.receipts_without_id(self.id, run.sequences)
            client.connection.touch()

    def _refuse(self, run: events.Sends, error: BrokerError) -> None:
        """Answer a failed run. An error on which clients drop the connection is the last answer:
        they attach again and repeat all messages without a receipt. If the topic is only being
        unloaded, CLOSE_PRODUCER has the same effect and keeps the connection.
        """
        client = self.client
        if client.gone or self.refused_some:
            return
        if spares_connection(error):
            for echo in run.sequences:
                client.reply(replies.send_error(self.id, hot.sequence_of(echo)[0], error))
            return
        self.refused_some = True
        if not self.producers.has(self):
            return  # the client or the broker has closed it
        self.forget()
        self.topic.detach_producer(self.producer)
        if isinstance(error, Unavailable):
            client.reply(replies.close_producer(self.id))
        else:
            first, _highest = hot.sequence_of(run.sequences[0])
            client.reply(replies.send_error(self.id, first, error))


def part_of(run: events.Sends, start: int, stop: int) -> events.Sends:
    """Some messages of a run, as a run."""
    if start == 0 and stop == len(run.payloads):
        return run
    payloads = run.payloads[start:stop]
    return msgspec.structs.replace(
        run,
        payloads=payloads,
        sequences=run.sequences[start:stop],
        size=sum(map(len, payloads)),
        counts=None if run.counts is None else run.counts[start:stop],
    )
