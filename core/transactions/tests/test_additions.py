"""Additions are stored together, and each has an answer of its own."""

from __future__ import annotations

import pytest

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.kernel.errors import BrokerError, NotAllowed, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.ledger_store import Done
from magnetar.core.transactions.additions import Addition, GatheredAdditions, WaitingAddition
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.transaction import Transaction, TransactionState


class Bench:
    """A transaction, and a store whose writes end when the test says so."""

    def __init__(self) -> None:
        self.slot = TransactionSlot("t", OwnedRecord(MemoryMetadata(), "/t", repr, eval))  # type: ignore[arg-type]  # not written
        self.slot.transaction = Transaction("t", 1, 0, 1000, state=TransactionState.ONGOING)
        self.written: list[tuple[list[str], Done]] = []
        self.able = True
        self.overs = 0
        self.answers: dict[str, object] = {}
        self.gathered = GatheredAdditions(self.slot, self)

    def add(self, *logs: str) -> None:
        name = logs[0]
        self.gathered.add(
            WaitingAddition(
                Addition([*logs], [], {}),
                lambda error: self.answers.update({name: error}),
                lambda: self.answers.update({name: "by task"}),
            )
        )

    def check(self, found: Transaction, added: Addition) -> None:
        del found
        if len(added.logs) > 3:
            raise NotAllowed("too many")

    def extend(self, slot: TransactionSlot, added: Addition, done: Done) -> bool:
        assert slot is self.slot
        if self.able:
            self.written.append((added.logs, done))
        return self.able

    def over(self, slot: TransactionSlot) -> None:
        assert slot is self.slot
        self.overs += 1

    def ends(self, error: BrokerError | None = None) -> list[str]:
        """The write ends; returns what it was of."""
        logs, done = self.written.pop()
        if error is None:
            self.slot.logs |= frozenset(logs)
        done(error)
        return logs


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_comes_together_is_one_write_and_what_comes_meanwhile_the_next(bench: Bench) -> None:
    bench.add("a")
    bench.add("b")
    bench.gathered.write()
    bench.add("c")
    bench.add("d")
    assert bench.answers == {}
    assert bench.ends() == ["a", "b"]
    assert bench.answers == {"a": None, "b": None}
    assert not bench.overs
    assert bench.ends() == ["c", "d"]
    assert bench.answers == dict.fromkeys("abcd")
    assert bench.overs == 1


def test_what_one_may_not_have_the_others_may(bench: Bench) -> None:
    bench.add("a")
    bench.add("b", "x", "y")
    bench.add("c")
    bench.gathered.write()
    assert isinstance(bench.answers.pop("b"), NotAllowed)
    assert bench.ends() == ["a", "c"]
    assert bench.answers == {"a": None, "c": None}
    assert bench.overs == 1


def test_without_anything_to_write_it_is_over(bench: Bench) -> None:
    bench.slot.logs = frozenset("a")
    bench.add("a")
    bench.add("b", "x", "y", "z")
    bench.gathered.write()
    assert bench.written == []
    assert bench.answers["a"] is None
    assert isinstance(bench.answers["b"], NotAllowed)
    assert bench.overs == 1


def test_behind_an_error_tasks_go_on(bench: Bench) -> None:
    bench.add("a")
    bench.gathered.write()
    bench.add("b")
    bench.ends(StorageFailed("no"))
    assert isinstance(bench.answers["a"], StorageFailed)
    assert bench.answers["b"] == "by task"
    assert bench.overs == 1


@pytest.mark.parametrize("decided", [True, False])
def test_tasks_do_what_plain_calls_cannot(bench: Bench, decided: bool) -> None:
    """The store is not able to, or it turned out that the transaction is decided."""
    bench.able = False
    if decided:
        assert bench.slot.transaction is not None
        bench.slot.transaction = Transaction("t", 1, 0, 1000, state=TransactionState.ABORTING)
    bench.add("a")
    bench.add("b")
    bench.gathered.write()
    assert bench.answers == {"a": "by task", "b": "by task"}
    assert bench.overs == 1
