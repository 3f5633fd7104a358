"""Requests to transaction coordinators: TC_CLIENT_CONNECT_REQUEST, NEW_TXN, ADD_PARTITION_TO_TXN,
ADD_SUBSCRIPTION_TO_TXN and END_TXN (PIP-31), on the transactions of core.

END_TXN is answered when every topic and subscription has the outcome, as by Apache's broker
(`TransactionMetadataStoreService.endTransaction` of 4.2). So a client that has committed may read
what it has written.

A client need not wait for answers: an END_TXN is decided after what comes before it on its
connection, and what comes later is carried out after the decision. The first of several END_TXN
counts. What is added to a transaction at a time is stored at a time.

Most requests find the transaction at rest, with none for it before them. They are carried out by
plain calls, without a task, where the metadata is able to write so (`at_once.py`).

END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION are for brokers to send to each other, and refused:
here core itself goes to topics and subscriptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from magnetar.core.kernel.errors import BrokerError, Unsupported
from magnetar.wire.pulsar import events, refusals, replies

if TYPE_CHECKING:
    from magnetar.core.ports.ledger_store import Done
    from magnetar.core.transactions.at_once import Owns, TransactionsAtOnce
    from magnetar.core.transactions.topic_transactions import TopicTransactions
    from magnetar.core.transactions.transaction_id import TransactionId
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.requests import RequestQueue


CarryOut = Callable[["TopicTransactions", Any, trio.Event], Awaitable[None]]
"""Carries a request out; it may set the event early, when others may begin."""


BeginAtOnce = Callable[["TransactionsAtOnce", Any, "Owns", "Done"], bool]
"""Begins a request by plain calls; False if that takes a task."""
Reply = Callable[[int, "TransactionId"], bytes]
"""The reply to a request of that number."""


class RequestOrder:
    """The unfinished requests of one transaction on one connection, in their order of arrival."""

    __slots__ = ("_additions", "_end", "unfinished")

    def __init__(self) -> None:
        self.unfinished = 0
        self._end: trio.Event | None = None
        """Set when the last END_TXN is decided."""
        self._additions: list[trio.Event] = []
        """Set when what came behind that is added."""

    def join(self, own: trio.Event, *, ends: bool) -> Sequence[trio.Event]:
        """Join; returns what to wait for. Those before an END_TXN are waited for by that
        one alone: so many requests that come at once cost no more than each by itself.
        """
        self.unfinished += 1
        last = () if self._end is None else (self._end,)
        if not ends:
            self._additions.append(own)
            return last
        before, self._additions, self._end = self._additions or last, [], own
        return before


class CoordinatorHandlers:
    """See the module's docstring. `transactions` is None if they are not enabled."""

    __slots__ = ("_client", "_orders", "_requests", "_transactions")

    def __init__(
        self,
        client: PulsarClient,
        requests: RequestQueue,
        transactions: TopicTransactions | None,
    ) -> None:
        self._client = client
        self._requests = requests
        self._transactions = transactions
        self._orders: dict[TransactionId, RequestOrder] | None = None
        """By transaction: requests that begin in the same turn of the loop have no order. None
        without any, for idle connections."""

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

    def on_add_partitions(self, event: events.AddPartitionsToTxn) -> None:
        if not self._begin_at_once(event, _add_topics, replies.partitions_added):
            self._ask_in_order(event, self._add_partitions, ends=False)

    def on_add_subscriptions(self, event: events.AddSubscriptionsToTxn) -> None:
        if not self._begin_at_once(event, _add_subscriptions, replies.subscriptions_added):
            self._ask_in_order(event, self._add_subscriptions, ends=False)

    def on_end_txn(self, event: events.EndTxn) -> None:
        if not self._begin_at_once(event, _end, replies.txn_ended):
            self._ask_in_order(event, self._end, ends=True)

    def _begin_at_once(self, event: Any, begin: BeginAtOnce, reply: Reply) -> bool:
        """Have a request carried out by plain calls, if none of its transaction is before it in the
        queue. What has begun so has the transaction's turn, or is stored with who has it.
        """
        requests, orders = self._requests, self._orders
        if self._transactions is None or not requests.may_begin_at_once(event):
            return False
        if orders is not None and event.txn in orders:
            return False
        done = partial(self._answer, event, reply)
        at_once = self._transactions.at_once
        return requests.begin_at_once(partial(begin, at_once, event, self._client.owns, done))

    def _answer(
        self,
        event: Any,
        reply: Reply,
        error: BrokerError | None,
    ) -> None:
        self._requests.answer(event, error, partial(reply, event.request_id, event.txn))

    def _ask_in_order(self, event: Any, carry_out: CarryOut, *, ends: bool) -> None:
        """Have a request carried out after those of its transaction that it may not overtake."""
        transactions = self._enabled(event)
        if transactions is None:
            return
        if self._orders is None:
            self._orders = {}
        order = self._orders.get(event.txn)
        if order is None:
            order = self._orders[event.txn] = RequestOrder()
        own = trio.Event()
        before = order.join(own, ends=ends)
        self._requests.add(partial(self._in_turn, transactions, carry_out, before, own), event)

    async def _in_turn(
        self,
        transactions: TopicTransactions,
        carry_out: CarryOut,
        before: Sequence[trio.Event],
        own: trio.Event,
        event: Any,
    ) -> None:
        try:
            for each in before:
                if not each.is_set():
                    await each.wait()
            await carry_out(transactions, event, own)
        finally:
            own.set()
            self._leave(event.txn)

    def _leave(self, txn: TransactionId) -> None:
        assert self._orders is not None, "it has asked"
        order = self._orders[txn]
        order.unfinished -= 1
        if not order.unfinished:
            del self._orders[txn]
            self._orders = self._orders or None

    async def _add_partitions(
        self, transactions: TopicTransactions, event: events.AddPartitionsToTxn, _over: trio.Event
    ) -> None:
        await transactions.add_topics(event.txn, event.topics, self._client.owns)
        self._client.reply(replies.partitions_added(event.request_id, event.txn))

    async def _add_subscriptions(
        self,
        transactions: TopicTransactions,
        event: events.AddSubscriptionsToTxn,
        _over: trio.Event,
    ) -> None:
        await transactions.add_subscriptions(event.txn, event.subscriptions, self._client.owns)
        self._client.reply(replies.subscriptions_added(event.request_id, event.txn))

    async def _end(
        self, transactions: TopicTransactions, event: events.EndTxn, over: trio.Event
    ) -> None:
        await transactions.end(event.txn, self._client.owns, commit=event.commit, decided=over.set)
        self._client.reply(replies.txn_ended(event.request_id, event.txn))

    def on_end_elsewhere(
        self, event: events.EndTxnOnPartition | events.EndTxnOnSubscription
    ) -> None:
        if self._enabled(event) is not None:
            raise Unsupported("topics and subscriptions learn of the end from this broker itself")


def _add_topics(
    at_once: TransactionsAtOnce, event: events.AddPartitionsToTxn, owns: Owns, done: Done
) -> bool:
    return at_once.add_topics(event.txn, event.topics, owns, done)


def _add_subscriptions(
    at_once: TransactionsAtOnce, event: events.AddSubscriptionsToTxn, owns: Owns, done: Done
) -> bool:
    return at_once.add_subscriptions(event.txn, event.subscriptions, owns, done)


def _end(at_once: TransactionsAtOnce, event: events.EndTxn, owns: Owns, done: Done) -> bool:
    return at_once.end(event.txn, owns, commit=event.commit, done=done)


HANDLERS: Final[Mapping[type, Any]] = {
    events.TcConnect: CoordinatorHandlers.on_tc_connect,
    events.NewTxn: CoordinatorHandlers.on_new_txn,
    events.AddPartitionsToTxn: CoordinatorHandlers.on_add_partitions,
    events.AddSubscriptionsToTxn: CoordinatorHandlers.on_add_subscriptions,
    events.EndTxn: CoordinatorHandlers.on_end_txn,
    events.EndTxnOnPartition: CoordinatorHandlers.on_end_elsewhere,
    events.EndTxnOnSubscription: CoordinatorHandlers.on_end_elsewhere,
}
