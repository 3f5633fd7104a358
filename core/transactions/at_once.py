"""Changes of transactions that need no task, because nobody else is changing the same one.

Each is a plain call, which calls back on the loop when the change is stored, or perhaps before it
returns, with what the task would raise. It returns False, and has done nothing, if the change takes
a task: to wait for its turn, to read a record or load a topic, to find out what is wrong, or
because the metadata store is not able to write without one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Protocol

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ports.ledger_store import Done
from magnetar.core.transactions.additions import Addition, GatheredAdditions, WaitingAddition
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.topic_host import TopicHost
from magnetar.core.transactions.transaction import Transaction, TransactionState
from magnetar.core.transactions.transaction_id import TransactionId, name_of

Owns = Callable[[str], bool]
"""Whether the caller may use a transaction of that owner."""


class ByTask(Protocol):
    """What the changes are, and how tasks make them."""

    def topics_added(self, topics: Collection[str]) -> Addition | None:
        """The addition, if all of these topics are ready for it."""
        ...

    def subscriptions_added(self, subscriptions: Collection[tuple[str, str]]) -> Addition: ...

    def checked(self, found: Transaction, added: Addition) -> Addition:
        """The addition, if the transaction may have it; else raises."""
        ...

    async def extend_in_turn(self, slot: TransactionSlot, added: Addition) -> None:
        """Add it, where the turn has been taken."""
        ...

    async def until_seen(
        self, key: TransactionId, slot: TransactionSlot, outcome: TransactionState
    ) -> None:
        """Wait until everybody sees an outcome."""
        ...


class TransactionsAtOnce:
    """See the module's docstring."""

    def __init__(
        self, broker: TopicHost, coordinator: TransactionCoordinator, by_task: ByTask
    ) -> None:
        self._broker = broker
        self._coordinator = coordinator
        self._by_task = by_task
        self._gathered: dict[str, GatheredAdditions] = {}

    # -- additions ------------------------------------------------------------------------------

    def add_topics(
        self, key: TransactionId, topics: Collection[str], owns: Owns, done: Done
    ) -> bool:
        return self._add(key, owns, partial(self._by_task.topics_added, topics), done)

    def add_subscriptions(
        self,
        key: TransactionId,
        subscriptions: Collection[tuple[str, str]],
        owns: Owns,
        done: Done,
    ) -> bool:
        return self._add(key, owns, partial(self._by_task.subscriptions_added, subscriptions), done)

    def _add(
        self,
        key: TransactionId,
        owns: Owns,
        addition: Callable[[], Addition | None],
        done: Done,
    ) -> bool:
        name = name_of(key)
        found = self._coordinator.find(name)
        if found is None or found.decided or not owns(found.owner):
            return False
        try:
            added = addition()
        except BrokerError:
            return False
        if added is None:
            return False
        waiting = WaitingAddition(added, done)
        gathered = self._gathered.get(name)
        if gathered is not None:
            if gathered.is_awaited:
                return False
            gathered.add(waiting)
            return True
        slot = self._coordinator.take(name)
        if slot is None:
            return False
        gathered = self._gathered[name] = GatheredAdditions(slot, self)
        gathered.add(waiting)
        self._broker.gather(gathered)
        return True

    def check(self, found: Transaction, added: Addition) -> None:
        """See `AdditionStore`, and so for the next three."""
        self._by_task.checked(found, added)

    def extend(self, slot: TransactionSlot, added: Addition, done: Done) -> bool:
        found = slot.transaction
        assert found is not None, "it is looked for before"
        now_ms = self._broker.clock.wall_ms()
        changed = found.extended(now_ms, added.logs, added.participants, added.spellings)
        return self._coordinator.store_at_once(slot, changed, done)

    def over(self, slot: TransactionSlot) -> None:
        del self._gathered[slot.name]
        self._coordinator.give_back(slot)

    def leave(self, slot: TransactionSlot, left: Sequence[WaitingAddition]) -> None:
        del self._gathered[slot.name]  # what comes now waits for the turn
        if left:
            self._broker.spawn(self._add_by_task, slot, left)
        else:
            self._coordinator.give_back(slot)

    async def _add_by_task(self, slot: TransactionSlot, left: Sequence[WaitingAddition]) -> None:
        try:
            for added, done in left:
                await _call_back(partial(self._by_task.extend_in_turn, slot, added), done)
        finally:
            self._coordinator.give_back(slot)

    # -- the end --------------------------------------------------------------------------------

    def end(self, key: TransactionId, owns: Owns, *, commit: bool, done: Done) -> bool:
        """Commit or abort what includes anything."""
        slot = self._coordinator.take(name_of(key))
        if slot is None:
            return False
        found = slot.transaction
        begun = False
        try:
            if found is not None and slot.begun is None and not found.decided and owns(found.owner):
                decided = partial(self._decided, key, slot, commit, done)
                begun = self._coordinator.decide_at_once(slot, commit=commit, done=decided)
        finally:
            if not begun:
                self._coordinator.give_back(slot)
        return begun

    def _decided(
        self,
        key: TransactionId,
        slot: TransactionSlot,
        commit: bool,
        done: Done,
        error: BrokerError | None,
    ) -> None:
        self._coordinator.give_back(slot)
        if error is not None or (slot.seen.is_set() and not slot.lost):
            done(error)
            return
        outcome = TransactionState.COMMITTING if commit else TransactionState.ABORTING
        seen = partial(self._by_task.until_seen, key, slot, outcome)
        self._broker.spawn(_call_back, seen, done)


async def _call_back(task: Callable[[], Awaitable[None]], done: Done) -> None:
    try:
        await task()
    except BrokerError as error:
        done(error)
    else:
        done(None)
