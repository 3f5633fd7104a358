"""Adds and their quorums, against a model: what is done can be found by a recovery."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from magnetar.bookie.client.quorum.pending_adds import PendingAdd, PendingAdds
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format.entries import Run


def run_of(first: int, count: int = 1) -> Run:
    return Run(1, first, b"", array("I", range(count + 1)))


class Ledger:
    """Pending adds, and what they report."""

    def __init__(self, ensemble: int = 3, write: int = 3, ack: int = 2) -> None:
        self.adds = PendingAdds(Striping(ensemble, write, ack), list("abcdef"[:ensemble]))
        self.done: list[int] = []

    def add(self, first: int, count: int = 1) -> PendingAdd:
        run = run_of(first, count)
        return self.adds.add(run, 10 * (first + count), lambda _: self.done.append(run.last))


def test_an_add_is_done_with_its_quorum() -> None:
    ledger = Ledger()
    first = ledger.add(0, count=5)
    ledger.adds.acknowledge(first, 2, "c")
    assert (ledger.done, ledger.adds.last_confirmed) == ([], -1)
    ledger.adds.acknowledge(first, 0, "a")
    assert ledger.done == [4]
    assert (ledger.adds.last_confirmed, ledger.adds.length_confirmed) == (4, 50)
    ledger.adds.acknowledge(first, 1, "b")
    assert ledger.done == [4]


def test_an_answer_counts_once() -> None:
    ledger = Ledger()
    first = ledger.add(0)
    for _ in range(3):
        ledger.adds.acknowledge(first, 0, "a")
    assert ledger.done == []


def test_adds_are_done_in_order() -> None:
    ledger = Ledger()
    first, second = ledger.add(0), ledger.add(1)
    for position, bookie in ((0, "a"), (1, "b")):
        ledger.adds.acknowledge(second, position, bookie)
    assert ledger.done == []
    for position, bookie in ((0, "a"), (1, "b")):
        ledger.adds.acknowledge(first, position, bookie)
    assert ledger.done == [0, 1]


def test_nothing_is_done_during_a_change() -> None:
    """#1591: the new ensemble is not in the metadata, so a recovery would not ask it."""
    ledger = Ledger()
    first = ledger.add(0)
    ledger.adds.acknowledge(first, 0, "a")
    assert ledger.adds.report_failure(2, "c")
    assert not ledger.adds.report_failure(2, "c")
    ledger.adds.acknowledge(first, 1, "b")
    assert (ledger.done, ledger.adds.first_affected) == ([], 0)
    assert ledger.adds.replace({2: "x"}) == [(first, 2)]
    assert (ledger.done, ledger.adds.ensemble) == ([0], ("a", "b", "x"))


def test_a_replaced_bookie_counts_no_more() -> None:
    ledger = Ledger()
    first = ledger.add(0)
    ledger.adds.acknowledge(first, 2, "c")
    ledger.adds.report_failure(2, "c")
    ledger.adds.replace({2: "x"})
    ledger.adds.acknowledge(first, 0, "a")
    ledger.adds.acknowledge(first, 2, "c")  # a late answer
    assert ledger.done == []
    assert not ledger.adds.report_failure(2, "c")
    ledger.adds.acknowledge(first, 2, "x")
    assert ledger.done == [0]


def test_a_failure_during_a_change_is_another_change() -> None:
    """#4459: it must neither be forgotten nor end the first."""
    ledger = Ledger()
    first = ledger.add(0)
    ledger.adds.report_failure(2, "c")
    ledger.adds.report_failure(1, "b")
    ledger.adds.replace({2: "x"})
    ledger.adds.acknowledge(first, 0, "a")
    ledger.adds.acknowledge(first, 2, "x")
    assert (ledger.done, dict(ledger.adds.failed)) == ([], {1: "b"})
    assert ledger.adds.replace({1: "y"}) == [(first, 1)]
    assert ledger.done == [0]


def test_what_has_no_replaced_position_is_not_sent_again() -> None:
    ledger = Ledger(ensemble=4, write=2, ack=2)
    adds = [ledger.add(entry_id) for entry_id in range(4)]
    ledger.adds.report_failure(3, "d")
    assert ledger.adds.replace({3: "x"}) == [(adds[2], 3), (adds[3], 3)]


def test_nothing_is_done_after_the_end() -> None:
    ledger = Ledger()
    first, second = ledger.add(0), ledger.add(1)
    assert ledger.adds.fail() == [first, second]
    for position, bookie in enumerate("abc"):
        ledger.adds.acknowledge(first, position, bookie)
    assert (ledger.done, ledger.adds.fail()) == ([], [])
    assert not ledger.adds.report_failure(0, "a")


def test_an_absent_bookie_is_not_waited_for() -> None:
    ledger = Ledger()
    first = ledger.add(0)
    ledger.adds.acknowledge(first, 0, "a")
    assert ledger.adds.report_failure(2, "c", first)
    ledger.adds.acknowledge(first, 1, "b")
    assert ledger.done == []
    assert ledger.adds.do_without([2])
    assert (ledger.done, dict(ledger.adds.absent)) == ([0], {2: "c"})
    assert not ledger.adds.report_failure(2, "c", ledger.add(1)), "it is not needed"
    assert ledger.adds.report_failure(1, "b")
    assert not ledger.adds.do_without([1]), "two are absent"


def test_an_absent_bookie_is_back_or_replaced() -> None:
    ledger = Ledger()
    assert not ledger.adds.retry_absent()
    first = ledger.add(0)
    ledger.adds.report_failure(2, "c", first)
    assert ledger.adds.do_without([2])
    second = ledger.add(1)
    ledger.adds.acknowledge(second, 2, "c")
    assert not ledger.adds.absent
    ledger.adds.report_failure(2, "c")
    assert ledger.adds.do_without([2])
    assert ledger.adds.retry_absent()
    assert dict(ledger.adds.failed) == {2: "c"}
    assert ledger.adds.replace({2: "x"}) == [(first, 2), (second, 2)]
    assert not ledger.adds.absent


def test_a_run_that_too_many_have_lost_is_never_waited_for() -> None:
    """Its bookies may be back since, and will not acknowledge it any more."""
    ledger = Ledger()
    first = ledger.add(0)
    ledger.adds.report_failure(2, "c", first)
    assert ledger.adds.do_without([2])
    ledger.adds.acknowledge(ledger.add(1), 2, "c")
    assert ledger.adds.report_failure(1, "b", first)
    assert not ledger.adds.do_without([1])


def test_an_ensemble_of_another_size() -> None:
    with pytest.raises(ValueError, match="2 bookies for an ensemble of 3"):
        PendingAdds(Striping(3, 3, 2), ["a", "b"])


class Writing(RuleBasedStateMachine):
    """Bookies that store, fail and are replaced in any order. The model is what they have stored,
    and the segments of the metadata; what is done must be on A of the bookies that the metadata
    names for it.
    """

    @initialize(sizes=st.sampled_from([(1, 1, 1), (3, 3, 2), (3, 2, 2), (4, 3, 2), (5, 3, 3)]))
    def begin(self, sizes: tuple[int, int, int]) -> None:
        self.striping = Striping(*sizes)
        names = [f"bookie-{number}" for number in range(self.striping.ensemble)]
        self.adds = PendingAdds(self.striping, names)
        self.segments = [(0, names)]
        self.stored: dict[str, set[int]] = {}
        self.on_their_way: list[tuple[PendingAdd, int, str]] = []
        self.answers: list[tuple[PendingAdd, int, str]] = []
        self.next = 0
        self.made = len(names)
        self.plan: tuple[int, dict[int, str]] | None = None
        self.done: list[int] = []

    @rule()
    def add(self) -> None:
        number = self.next
        pending = self.adds.add(run_of(number), number + 1, lambda _: self.done.append(number))
        self.next += 1
        for position in pending.positions:
            self.on_their_way.append((pending, position, self.adds.ensemble[position]))

    @precondition(lambda self: self.on_their_way)
    @rule(data=st.data())
    def store(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.on_their_way) - 1))
        pending, position, bookie = self.on_their_way.pop(index)
        self.stored.setdefault(bookie, set()).add(pending.run.first)
        self.answers.append((pending, position, bookie))

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.answers) - 1))
        self.adds.acknowledge(*self.answers.pop(index))

    @rule()
    def store_and_answer_all(self) -> None:
        while self.on_their_way:
            pending, position, bookie = self.on_their_way.pop(0)
            self.stored.setdefault(bookie, set()).add(pending.run.first)
            self.answers.append((pending, position, bookie))
        while self.answers:
            self.adds.acknowledge(*self.answers.pop(0))

    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, self.striping.ensemble - 1))
        self.adds.report_failure(position, self.adds.ensemble[position])

    @precondition(lambda self: self.adds.failed and self.plan is None)
    @rule()
    def begin_change(self) -> None:
        """As the caller begins it: bookies that fail from now on are not in it."""
        bookies = {position: f"bookie-{self.made + position}" for position in self.adds.failed}
        self.made += self.striping.ensemble
        self.plan = self.adds.first_affected, bookies

    @precondition(lambda self: self.on_their_way)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.on_their_way) - 1))
        pending, position, bookie = self.on_their_way.pop(index)
        self.adds.report_failure(position, bookie, pending)

    @precondition(lambda self: self.adds.failed and self.plan is None)
    @rule()
    def do_without(self) -> None:
        self.adds.do_without(list(self.adds.failed))

    @precondition(lambda self: self.adds.absent and self.plan is None)
    @rule()
    def retry_absent(self) -> None:
        self.adds.retry_absent()

    @precondition(lambda self: self.plan is not None)
    @rule()
    def end_change(self) -> None:
        assert self.plan is not None
        (first, bookies), self.plan = self.plan, None
        members = list(self.segments[-1][1])
        for position, bookie in bookies.items():
            members[position] = bookie
        if self.segments[-1][0] == first:
            self.segments.pop()
        self.segments.append((first, members))
        for pending, position in self.adds.replace(bookies):
            self.on_their_way.append((pending, position, self.adds.ensemble[position]))

    @invariant()
    def what_is_done_can_be_found(self) -> None:
        if not hasattr(self, "done"):
            return
        assert self.done == list(range(self.adds.last_confirmed + 1))
        assert self.adds.length_confirmed == len(self.done)
        for entry_id in self.done:
            members = next(names for first, names in reversed(self.segments) if first <= entry_id)
            write_set = [members[position] for position in self.striping.write_set(entry_id)]
            having = [name for name in write_set if entry_id in self.stored.get(name, ())]
            assert len(having) >= self.striping.ack

    def teardown(self) -> None:
        """When nothing fails any more, everything is done."""
        if not hasattr(self, "done"):
            return
        if self.plan is not None:
            self.end_change()
        while self.adds.failed or self.on_their_way or self.answers or self.adds.retry_absent():
            if failed := dict(self.adds.failed):
                bookies = {position: f"last-{position}" for position in failed}
                for pending, position in self.adds.replace(bookies):
                    self.on_their_way.append((pending, position, self.adds.ensemble[position]))
            self.answers += self.on_their_way
            self.on_their_way = []
            for one in self.answers:
                self.adds.acknowledge(*one)
            self.answers = []
        assert self.done == list(range(self.next))


TestWriting = Writing.TestCase
TestWriting.settings = settings(max_examples=200, stateful_step_count=50)
