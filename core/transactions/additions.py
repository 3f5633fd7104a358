"""What clients add to a transaction by plain calls: gathered, and stored together.

Clients ask for a topic and for a subscription at nearly the same time. What comes in one sweep is
stored by one write at its end, and what comes during that write by the next one.

    state       means                                 leaves for
    GATHERING   the write follows in this sweep       WRITING; over, if nothing is left to write
    WRITING     it is under way                       WRITING, if more has come; over

What cannot be stored so is left to a task, which takes over the turn and finds out what is wrong.
So what waits for the turn, such as the end, is carried out after all that came before it.

Invariant: from the first addition until it is over the turn to change the transaction is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol

from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ports.ledger_store import Done
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.transaction import Transaction


class Addition(Struct, eq=False):
    """What a client adds to a transaction; two that say the same are two."""

    logs: list[str]
    participants: list[str]
    spellings: dict[str, str]

    def joined(self, other: Addition) -> Addition:
        return Addition(
            [*self.logs, *other.logs],
            [*self.participants, *other.participants],
            {**self.spellings, **other.spellings},
        )

    def is_in(self, slot: TransactionSlot) -> bool:
        """Whether the transaction includes all of it."""
        has_logs = slot.logs.issuperset(self.logs)
        return has_logs and slot.participants.issuperset(self.participants)


class WaitingAddition(NamedTuple):
    """An addition, and who waits for it."""

    added: Addition
    done: Done


class AdditionStore(Protocol):
    """The transactions that these belong to."""

    def check(self, found: Transaction, added: Addition) -> None:
        """Raise if the transaction may not have it."""
        ...

    def extend(self, slot: TransactionSlot, added: Addition, done: Done) -> bool:
        """Store it, and call back; False, and nothing is done, if that takes a task."""
        ...

    def over(self, slot: TransactionSlot) -> None:
        """The turn ends."""
        ...

    def leave(self, slot: TransactionSlot, left: Sequence[WaitingAddition]) -> None:
        """Have a task add these, and end the turn then."""
        ...


class GatheredAdditions:
    """Those to one transaction, whose turn has been taken. See the module's docstring."""

    __slots__ = ("_slot", "_store", "_waiting")

    def __init__(self, slot: TransactionSlot, store: AdditionStore) -> None:
        self._slot = slot
        self._store = store
        self._waiting: list[WaitingAddition] = []

    def add(self, waiting: WaitingAddition) -> None:
        self._waiting.append(waiting)

    @property
    def is_awaited(self) -> bool:
        """Whether others wait for the turn: what comes now comes after them."""
        return self._slot.lock.statistics().tasks_waiting > 0

    def write(self) -> None:
        """Store what has been gathered."""
        gathered, self._waiting = self._waiting, []
        found = self._slot.transaction
        if found is None or found.decided:
            self._store.leave(self._slot, gathered)
            return
        joined, taken = Addition([], [], {}), list[WaitingAddition]()
        for each in gathered:
            if each.added.is_in(self._slot):
                each.done(None)
                continue
            more = joined.joined(each.added)
            try:
                self._store.check(found, more)
            except BrokerError as error:
                if taken:  # with what others ask for: it may still have it behind them
                    self._waiting.append(each)
                else:
                    each.done(error)
            else:
                joined = more
                taken.append(each)
        if not taken:
            self._store.over(self._slot)
        elif not self._store.extend(self._slot, joined, partial(self._stored, taken)):
            left, self._waiting = [*taken, *self._waiting], []
            self._store.leave(self._slot, left)

    def _stored(self, taken: Sequence[WaitingAddition], error: BrokerError | None) -> None:
        if error is not None:
            left, self._waiting = self._waiting, []
            self._store.leave(self._slot, left)
        elif self._waiting:
            self.write()
        else:
            self._store.over(self._slot)
        for each in taken:
            each.done(error)
