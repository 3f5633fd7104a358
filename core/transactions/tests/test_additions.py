"""Additions are stored together, and each has an answer of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing

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
        self.left: list[list[str]] = []
        """What was left to tasks, with the turn."""
        self.answers: dict[str, object] = {}
        self.gathered = GatheredAdditions(self.slot, self)

    def add(self, *logs: str) -> None:
        name = logs[0]
        self.gathered.add(
            WaitingAddition(
                Addition([*logs], [], {}), lambda error: self.answers.update({name: error})
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

    def leave(self, slot: TransactionSlot, left: Sequence[WaitingAddition]) -> None:
        assert slot is self.slot
        self.left.append([each.added.logs[0] for each in left])

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


def test_what_does_not_go_with_the_others_is_tried_behind_them(bench: Bench) -> None:
    """It may have been refused for what they ask for, which is not stored yet, or is the same."""
    bench.add("a", "x", "y")
    bench.add("b", "x", "y", "z")
    bench.add("x", "y")
    bench.gathered.write()
    assert bench.answers == {}
    assert bench.ends() == ["a", "x", "y"]
    assert isinstance(bench.answers.pop("b"), NotAllowed), "it has too many by itself"
    assert bench.answers == {"a": None, "x": None}
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


def test_behind_an_error_a_task_goes_on_with_the_turn(bench: Bench) -> None:
    bench.add("a")
    bench.gathered.write()
    bench.add("b")
    bench.add("c")
    bench.ends(StorageFailed("no"))
    assert isinstance(bench.answers.pop("a"), StorageFailed)
    assert bench.answers == {}
    assert bench.left == [["b", "c"]]
    assert not bench.overs, "the task ends it"


@pytest.mark.parametrize("decided", [True, False])
def test_tasks_do_what_plain_calls_cannot(bench: Bench, decided: bool) -> None:
    """The store is not able to, or it turned out that the transaction is decided."""
    bench.able = False
    if decided:
        assert bench.slot.transaction is not None
        bench.slot.transaction = Transaction("t", 1, 0, 1000, state=TransactionState.ABORTING)
    bench.add("a")
    bench.add("b", "x", "y")
    bench.gathered.write()
    assert bench.answers == {}
    assert bench.left == [["a", "b"]]
    assert not bench.overs


async def test_who_waits_for_the_turn_is_before_what_comes_now(bench: Bench) -> None:
    assert not bench.gathered.is_awaited
    bench.slot.lock.acquire_nowait()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.slot.lock.acquire)
        await trio.testing.wait_all_tasks_blocked()
        assert bench.gathered.is_awaited
        nursery.cancel_scope.cancel()
