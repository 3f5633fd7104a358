"""Requests to transaction coordinators: TC_CLIENT_CONNECT_REQUEST, NEW_TXN, ADD_PARTITION_TO_TXN,
ADD_SUBSCRIPTION_TO_TXN and END_TXN (PIP-31), on the transactions of core.

END_TXN is answered when every topic and subscription has the outcome, as by Apache's broker
(`TransactionMetadataStoreService.endTransaction` of 4.2). So a client that has committed may read
what it has written. Several END_TXN of a transaction that come on one connection are decided in
their order, though none waits for the answer of another: the first one counts.

END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION are for brokers to send to each other, and refused:
here core itself goes to topics and subscriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from magnetar.core.kernel.errors import Unsupported
from magnetar.wire.pulsar import events, refusals, replies

if TYPE_CHECKING:
    from magnetar.core.transactions.topic_transactions import TopicTransactions
    from magnetar.core.transactions.transaction_id import TransactionId
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.requests import RequestQueue


class CoordinatorHandlers:
    """See the module's docstring. `transactions` is None if they are not enabled."""

    __slots__ = ("_client", "_deciding", "_requests", "_transactions")

    def __init__(
        self,
        client: PulsarClient,
        requests: RequestQueue,
        transactions: TopicTransactions | None,
    ) -> None:
        self._client = client
        self._requests = requests
        self._transactions = transactions
        self._deciding: dict[TransactionId, trio.Event] | None = None
        """By transaction: set when its last END_TXN is decided. Requests that begin in the same
        turn of the loop have no order. None without any, for idle connections."""

    def _enabled(self, event: Any) -> TopicTransactions | None:
        """The transactions; else the client gets the message that it looks for."""
        if self._transactions is None:
            self._client.reply(refusals.transactions_are_off(event.request_id))
        return self._transactions

    def on_tc_connect(self, event: events.TcConnect) -> None:
        transactions = self._enabled(event)
        if transactions is not None:
            transactions.check_coordinator(event.coordinator_id)
            self._client.reply(replies.coordinator_connected(event.request_id))

    def on_new_txn(self, event: events.NewTxn) -> None:
        transactions = self._enabled(event)
        if transactions is None:
            return
        owner = self._client.principal
        txn = transactions.begin_at_once(event.coordinator_id, event.ttl_millis, owner)
        if txn is not None:
            self._client.reply(replies.new_txn(event.request_id, txn))
        else:
            self._requests.add(partial(self._begin, transactions, owner), event)

    async def _begin(
        self, transactions: TopicTransactions, owner: str, event: events.NewTxn
    ) -> None:
        txn = await transactions.begin(event.coordinator_id, event.ttl_millis, owner)
        self._client.reply(replies.new_txn(event.request_id, txn))

    async def on_add_partitions(self, event: events.AddPartitionsToTxn) -> None:
        transactions = self._enabled(event)
        if transactions is not None:
            await transactions.add_topics(event.txn, event.topics, self._client.owns)
            self._client.reply(replies.partitions_added(event.request_id, event.txn))

    async def on_add_subscriptions(self, event: events.AddSubscriptionsToTxn) -> None:
        transactions = self._enabled(event)
        if transactions is not None:
            pairs = event.subscriptions
            await transactions.add_subscriptions(event.txn, pairs, self._client.owns)
            self._client.reply(replies.subscriptions_added(event.request_id, event.txn))

    def on_end_txn(self, event: events.EndTxn) -> None:
        transactions = self._enabled(event)
        if transactions is not None:
            if self._deciding is None:
                self._deciding = {}
            before, decided = self._deciding.get(event.txn), trio.Event()
            self._deciding[event.txn] = decided
            self._requests.add(partial(self._end, transactions, before, decided), event)

    async def _end(
        self,
        transactions: TopicTransactions,
        before: trio.Event | None,
        decided: trio.Event,
        event: events.EndTxn,
    ) -> None:
        try:
            if before is not None:
                await before.wait()
            await transactions.end(
                event.txn, self._client.owns, commit=event.commit, decided=decided.set
            )
        finally:
            self._decided(event.txn, decided)
        self._client.reply(replies.txn_ended(event.request_id, event.txn))

    def _decided(self, txn: TransactionId, decided: trio.Event) -> None:
        decided.set()
        if self._deciding is not None and self._deciding.get(txn) is decided:
            del self._deciding[txn]
            self._deciding = self._deciding or None

    def on_end_elsewhere(
        self, event: events.EndTxnOnPartition | events.EndTxnOnSubscription
    ) -> None:
        if self._enabled(event) is not None:
            raise Unsupported("topics and subscriptions learn of the end from this broker itself")


HANDLERS: Final[Mapping[type, Any]] = {
    events.TcConnect: CoordinatorHandlers.on_tc_connect,
    events.NewTxn: CoordinatorHandlers.on_new_txn,
    events.AddPartitionsToTxn: CoordinatorHandlers.on_add_partitions,
    events.AddSubscriptionsToTxn: CoordinatorHandlers.on_add_subscriptions,
    events.EndTxn: CoordinatorHandlers.on_end_txn,
    events.EndTxnOnPartition: CoordinatorHandlers.on_end_elsewhere,
    events.EndTxnOnSubscription: CoordinatorHandlers.on_end_elsewhere,
}
