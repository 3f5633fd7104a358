"""Hanging transactions: topics wait for their end, and no coordinator knows them.

Topics and subscriptions take part in nothing that no record names, and the record is deleted last
(`topic_transactions.py`). So only damage has a transaction hang (the word is that of KIP-664):

    its record cannot be read                            it was open, or decided
    its record is lost: a repair of the metadata         it was open, or decided
    dropped it, or an older copy is back
    its marker is lost from a log                        it was decided, and its record is deleted

Readers of such a topic stop for good, and what the transaction acknowledges is delivered to nobody.
Whether it was to be committed is not known any more, and a client may have been told: so nothing
here decides by itself. It is logged and shown, and aborted when an operator says so. Topics that
are not loaded are looked at only then: those that may have a part in it are loaded, one after the
other, and unloaded again if they have none.

Invariant: a transaction that a coordinator knows does not hang, nor one that another broker
coordinates.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from magnetar.core.entry.form import TransactionalForm, TransactionKey
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError, NotOwned, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.topic_host import TopicHost
from magnetar.core.transactions.transaction_id import TransactionId, name_of, shown
from magnetar.core.transactions.unloaded_topics import unloaded_topics

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 30.0
SHOWN_MAX: Final = 100
"""Hanging transactions of a topic that are logged, and shown."""


class HangingTransactions:
    """See the module's docstring."""

    def __init__(
        self, broker: TopicHost, coordinator: TransactionCoordinator, form: TransactionalForm
    ) -> None:
        self._broker = broker
        self._coordinator = coordinator
        self._form = form
        self._told: set[tuple[str, TransactionId]] = set()
        """What was logged, as far as it hangs still."""

    async def run(self) -> None:
        """Log what hangs in loaded topics, until cancelled."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Log what hangs, each once."""
        found = set[tuple[str, TransactionId]]()
        async for topic in Cooperative(list(self._broker.topics.values())):
            if topic.stored is None:
                continue
            for key in await self.of(topic.stored):
                one = topic.name.full, key
                found.add(one)
                if one not in self._told:
                    log.error(
                        "%s: transaction %s hangs: no coordinator knows it any more; until it is "
                        "aborted, nothing behind its first message is delivered, and nothing that "
                        "it acknowledges (admin tool: transactions abort-transaction -m %d -l %d)",
                        topic.name,
                        shown(key),
                        *key,
                    )
        self._told = found

    async def of(self, topic: PersistentTopic) -> list[TransactionId]:
        """Those that hang in a topic or in its subscriptions."""
        found = list[TransactionId]()
        async for key in Cooperative(_held_in(topic)):
            # of another protocol's, its own tools tell
            if not isinstance(key, int) and await self._hangs(key):
                found.append(key)
                if len(found) == SHOWN_MAX:
                    break
        return found

    async def _hangs(self, key: TransactionId) -> bool:
        name = name_of(key)
        return not self._coordinator.knows(name) and await self._coordinator.records.is_ours(name)

    async def abort(self, key: TransactionId) -> bool:
        """Abort a transaction that hangs, in all topics, and delete a record of it that cannot be
        read; False if there is nothing of it, or it does not hang. Raises the first error of a
        topic that cannot be loaded, after the others.
        """
        if not await self._hangs(key):
            return False
        topics = [each.stored for each in self._broker.topics.values() if each.stored is not None]
        held = [topic for topic in topics if key in _held_in(topic)]
        for topic in held:
            await self._abort_in(topic, key)
        found, failure = bool(held), None
        for name in await unloaded_topics(self._broker):
            try:
                found |= await self._abort_in_unloaded(name, key)
            except (NotOwned, TopicNotFound):
                continue  # it is another broker's, or deleted meanwhile
            except BrokerError as error:
                log.error("%s: not asked for transaction %s: %s", name, shown(key), error)
                failure = failure or error
        if failure is not None:
            raise failure
        # last: until then a start names it in the log
        return await self._coordinator.records.discard_damaged(name_of(key)) or found

    async def _abort_in_unloaded(self, name: TopicName, key: TransactionId) -> bool:
        """Load a topic, and abort the transaction there; returns whether it had a part in it."""
        topic = await self._broker.topic(name, create=False)
        if topic.stored is not None and key in _held_in(topic.stored):
            await self._abort_in(topic.stored, key)
            return True
        if not topic.in_use:
            await self._broker.unload(name)
        return False

    async def _abort_in(self, topic: PersistentTopic, key: TransactionId) -> None:
        log.warning("%s: transaction %s is aborted by an operator", topic.name, shown(key))
        if key in topic.transactions.index.open:
            await topic.end_transaction(self._form, key, 0, committed=False)
        for subscription in list(topic.subscriptions.values()):
            if key in subscription.cursor.pending:
                await subscription.end_transaction(key, committed=False)


def _held_in(topic: PersistentTopic) -> dict[TransactionKey, None]:
    """The transactions that are open in a topic, or hold messages in its subscriptions."""
    found = dict.fromkeys(topic.transactions.index.open if topic.source is None else ())
    for subscription in topic.subscriptions.values():
        if subscription.cursor.pending:
            found.update(dict.fromkeys(subscription.cursor.pending.held))
    return found
