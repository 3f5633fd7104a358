"""SEND and ACK in transactions: whether a run may be published in one, and acknowledgements in one.

Invariants: the transaction is asked for in the turn of the loop in which a run goes to its log, or
an acknowledgement to its cursor; what the metadata of a message says of transactions is what its
SEND says, because the log is replayed by it: where it says nothing, it is added. An acknowledgement
is answered when it is stored.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from magnetar.core.entry.pulsar import metadata
from magnetar.core.kernel.errors import BrokerError, NotAllowed, NotReady
from magnetar.core.ledger.cursor.pending_acks import HELD_MAX, HeldPart
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

    __slots__ = ("_client", "_requests", "transactions")

    def __init__(
        self, client: PulsarClient, requests: RequestQueue, transactions: TopicTransactions | None
    ) -> None:
        self._client = client
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
        """Acknowledge in a transaction; the answer follows when that is stored."""
        if self.transactions is None:
            self._answer(event, OFF)
            return
        if topic is None:
            self._answer(event, UNSTORED)
            return
        try:
            if len(event.ranges) + len(event.partial) > HELD_MAX:
                raise NotAllowed(f"a request acknowledges at most {HELD_MAX} messages")
            self._usable(topic, consumer, event)
        except BrokerError as error:
            self._answer(event, error)
            return
        parts = _sized(topic, event)
        if parts is None:
            self._requests.add(partial(self._acknowledge_later, topic, consumer), event)
        else:
            self._hold(topic, consumer, event, parts)

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
            for ledger_id, entry_id, unacked, size in event.partial:
                if not size:
                    part = await topic.ledger.read((ledger_id, entry_id), 1, 1)
                    size = max(part.messages(), unacked.bit_length())
                parts.append((ledger_id, entry_id, unacked, size))
        except BrokerError as error:
            self._answer(event, error)
            return
        self._hold(topic, consumer, event, parts)

    def _hold(
        self,
        topic: PersistentTopic,
        consumer: Consumer,
        event: events.Acks,
        parts: list[HeldPart],
    ) -> None:
        try:
            self._try_to_hold(topic, consumer, event, parts)
        except BrokerError as error:
            self._answer(event, error)

    def _try_to_hold(
        self,
        topic: PersistentTopic,
        consumer: Consumer,
        event: events.Acks,
        parts: list[HeldPart],
    ) -> None:
        subscription, txn = self._usable(topic, consumer, event), event.txn
        assert txn is not None
        if not event.cumulative:
            subscription.hold(consumer, txn, event.ranges, parts)
        elif len(event.ranges) + len(parts) == 1:
            (up_to,) = parts or [(event.ranges[0][0], event.ranges[0][2], 0, 0)]
            subscription.hold_up_to(consumer, txn, up_to)
        if event.request_id is not None:
            subscription.cursor.when_saved(partial(self._answer, event))

    def _answer(self, event: events.Acks, error: BrokerError | None) -> None:
        if event.request_id is not None:
            consumer_id, request_id = event.consumer_id, event.request_id
            self._client.reply(replies.ack_response(consumer_id, request_id, error, event.txn))


def _sized(topic: PersistentTopic, event: events.Acks) -> list[HeldPart] | None:
    """Parts of batches with their sizes; None if one has to be read from storage."""
    parts: list[HeldPart] = []
    for ledger_id, entry_id, unacked, size in event.partial:
        if not size:
            found = topic.ledger.cached((ledger_id, entry_id))
            if found is None:
                return None
            part, place = found
            size = 1 if part.counts is None else part.counts[place]
        parts.append((ledger_id, entry_id, unacked, max(size, unacked.bit_length())))
    return parts
