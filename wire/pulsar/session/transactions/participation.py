"""SEND and ACK in transactions: whether a run may be published in one, and acknowledgements in one.

Invariants: the transaction is asked for in the turn of the loop in which a run goes to its log, or
an acknowledgement to its cursor; what the metadata of a message says of transactions is what its
SEND says, because the log is replayed by it: where it says nothing, it is added. An acknowledgement
is answered when it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from magnetar.core.entry.pulsar import metadata
from magnetar.core.kernel.errors import BrokerError, NotAllowed, NotReady
from magnetar.core.ledger.cursor.pending_acks import HELD_MAX, HeldPart
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.wire.pulsar import events, replies

if TYPE_CHECKING:
    from magnetar.core.transactions.topic_transactions import TopicTransactions
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.requests import RequestQueue

OFF: Final = NotAllowed("Transactions are not enabled.")
UNSTORED: Final = NotAllowed("a topic that stores nothing takes part in no transaction")


class TransactionParticipation:
    """See the module's docstring. `transactions` is None if they are not enabled."""

    __slots__ = ("_batch_index_acks", "_client", "_requests", "transactions")

    def __init__(
        self,
        client: PulsarClient,
        requests: RequestQueue,
        transactions: TopicTransactions | None,
        batch_index_acks: bool,
    ) -> None:
        self._client = client
        self._batch_index_acks = batch_index_acks
        self._requests = requests
        self.transactions = transactions

    # -- publishing -----------------------------------------------------------------------------

    def refusal(self, topic: PersistentTopic | None, txn: events.Txn) -> NotAllowed | None:
        """Why messages may not be published in a transaction. On any other error than this one
        clients would close the connection, and send them again.
        """
        transactions = self.transactions
        if transactions is None:
            return OFF
        if topic is None:
            return UNSTORED
        try:
            transactions.check_publish(txn, topic.name, self._client.owns)
        except BrokerError as error:
            return NotAllowed(str(error))
        if not topic.transactions.present:
            return NotAllowed("the topic is to be added to the transaction again")
        return None

    @staticmethod
    def stated(run: events.Sends, txn: events.Txn) -> events.Sends:
        """The run with messages that state the transaction, as what is stored has to."""
        if all(map(metadata.transaction, run.payloads)):
            return run
        payloads = [
            each if metadata.transaction(each) else metadata.with_transaction(each, *txn)
            for each in run.payloads
        ]
        return replace(run, payloads=payloads, size=sum(map(len, payloads)))

    # -- acknowledging --------------------------------------------------------------------------

    def acknowledge(
        self, topic: PersistentTopic | None, consumer: Consumer, event: events.Acks
    ) -> None:
        """Acknowledge in a transaction; the answer follows when that is stored. Of requests that
        are joined, each is tried by itself if not all can be had.
        """
        try:
            unsized = self._try(topic, consumer, event)
        except BrokerError as error:
            if event.joined:
                for one in parted(event):
                    self.acknowledge(topic, consumer, one)
                return
            self.answer(event, error)
            return
        if unsized:
            assert topic is not None
            self._requests.add(partial(self._acknowledge_later, topic, consumer), event)

    def _try(self, topic: PersistentTopic | None, consumer: Consumer, event: events.Acks) -> bool:
        """Acknowledge; True, and nothing is changed, if the size of a batch has to be read."""
        if self.transactions is None:
            raise OFF
        if topic is None:
            raise UNSTORED
        if len(event.ranges) + len(event.partial) > HELD_MAX:
            raise NotAllowed(f"a request acknowledges at most {HELD_MAX} messages")
        subscription = self._usable(topic, consumer, event)
        parts = []
        for part in event.partial if self._takes_parts(event) else ():
            found = None if part[3] else topic.ledger.cached(part[:2])
            if found is None and not part[3]:
                return True
            parts.append(part if found is None else _sized(part, *found))
        self._hold(subscription, consumer, event, parts)
        return False

    def _takes_parts(self, event: events.Acks) -> bool:
        """Whether single messages of batches are acknowledged: else only all of them are, as
        outside of transactions.
        """
        return self._batch_index_acks or event.cumulative

    def _usable(
        self, topic: PersistentTopic, consumer: Consumer, event: events.Acks
    ) -> PersistentSubscription:
        """The subscription, if messages of it may be acknowledged in the transaction now."""
        txn, transactions = event.txn, self.transactions
        assert txn is not None
        assert transactions is not None
        name = "" if consumer.subscription is None else consumer.subscription.name
        subscription = topic.subscriptions.get(name)
        if subscription is None:
            raise NotReady("the consumer is not attached")
        transactions.check_acknowledge(txn, topic.name, name, self._client.owns)
        return subscription

    async def _acknowledge_later(
        self, topic: PersistentTopic, consumer: Consumer, event: events.Acks
    ) -> None:
        """The same, where the sizes of batches have to be read: Go does not state them."""
        parts = []
        try:
            for part in event.partial:
                found = None if part[3] else await topic.ledger.read(part[:2], 1, 1)
                parts.append(part if found is None else _sized(part, found, 0))
            self._hold(self._usable(topic, consumer, event), consumer, event, parts)
        except BrokerError as error:
            self.answer(event, error)

    def _hold(
        self,
        subscription: PersistentSubscription,
        consumer: Consumer,
        event: events.Acks,
        parts: list[HeldPart],
    ) -> None:
        txn = event.txn
        assert txn is not None
        if not event.cumulative:
            subscription.hold(consumer, txn, event.ranges, parts)
        elif len(event.ranges) + len(parts) == 1:
            (up_to,) = parts or [(event.ranges[0][0], event.ranges[0][2], 0, 0)]
            subscription.hold_up_to(consumer, txn, up_to)
        if event.request_id is not None or event.joined:
            subscription.cursor.when_saved(partial(self.answer, event))

    def answer(self, event: events.Acks, error: BrokerError | None) -> None:
        """Answer the request, or all that are joined."""
        consumer_id, reply = event.consumer_id, self._client.reply
        if event.joined and error is None:
            assert event.txn is not None
            reply(replies.ack_responses(consumer_id, [one[0] for one in event.joined], event.txn))
            return
        for one in parted(event) if event.joined else (event,):
            if (request_id := one.request_id) is not None:
                reply(replies.ack_response(consumer_id, request_id, error, event.txn))


def parted(event: events.Acks) -> Iterator[events.Acks]:
    """The requests that are joined, each by itself."""
    for request_id, ledger_id, entry_id in event.joined:
        ranges = [(ledger_id, entry_id, entry_id)]
        yield replace(event, ranges=ranges, request_id=request_id, joined=[])


def _sized(part: HeldPart, found: Slice, place: int) -> HeldPart:
    """Messages of a batch that is found at a place, with the batch's size."""
    size = 1 if found.counts is None else found.counts[place]
    return *part[:3], max(size, part[2].bit_length())
