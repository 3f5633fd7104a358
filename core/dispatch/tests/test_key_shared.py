from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from magnetar.core.dispatch.key_shared import KeyedPlan, KeyShared, Mode
from magnetar.core.dispatch.selectors import Division
from magnetar.core.kernel.errors import HashRangeTaken, SubscriptionBusy

ORDERED = Mode()


@dataclass(eq=False)
class Taker:
    name: str
    permits: int = 1000
    ready: bool = True


def shown(plan: KeyedPlan[Taker]) -> tuple[list[tuple[str, int, int]], list[int], int]:
    return [(p.consumer.name, p.start, p.count) for p in plan.portions], plan.held, plan.seen


def sticky(*ranges: tuple[int, int]) -> tuple[KeyShared[Taker], list[Taker]]:
    """Consumers a, b, ... that own these ranges."""
    keyed = KeyShared[Taker](Mode(sticky=True))
    takers = [Taker(name) for name, _range in zip("abcd", ranges, strict=False)]
    for taker, one in zip(takers, ranges, strict=True):
        keyed.attach(taker, Mode(sticky=True), [one])
    return keyed, takers


@pytest.mark.parametrize(
    ("keyed", "of_test"),
    [
        (KeyShared[Taker](ORDERED), (0xBA6BD213 & 0x7FFFFFFF) % 65535 + 1),
        (KeyShared[Taker](ORDERED, Division(ring=False)), (0xBA6BD213 & 0x7FFFFFFF) % 65536),
        (KeyShared[Taker](Mode(sticky=True)), (0xBA6BD213 & 0x7FFFFFFF) % 65536),
    ],
)
def test_hashes_of_keys(keyed: KeyShared[Taker], of_test: int) -> None:
    assert keyed.hash_of(b"") == 1  # 0 means "none"
    assert keyed.hash_of(b"test") == of_test
    assert all(1 <= keyed.hash_of(str(i).encode()) <= 65535 for i in range(1000))


def test_neighbours_of_one_consumer_are_one_portion() -> None:
    keyed, _ = sticky((0, 99), (100, 199))
    plan = keyed.choose([1, 2, 150, 151, 3], None, (), 10)
    assert shown(plan) == ([("a", 0, 2), ("b", 2, 2), ("a", 4, 1)], [], 5)


def test_what_nobody_owns_is_held_back() -> None:
    keyed, _ = sticky((0, 99))
    assert shown(keyed.choose([1, 150, 2], None, (), 10)) == ([("a", 0, 1), ("a", 2, 1)], [1], 3)
    assert shown(keyed.choose([150, 150, 150, 1], None, (), 2)) == ([], [0, 1], 2)


def test_permits_count_messages() -> None:
    keyed, (a, _b) = sticky((0, 99), (100, 199))
    a.permits = 5
    plan = keyed.choose([1, 2, 150, 3], [4, 4, 4, 4], (), 10)
    assert shown(plan) == ([("a", 0, 2), ("b", 2, 1)], [3], 4)
    a.ready = False
    assert shown(keyed.choose([1], None, (), 10)) == ([], [0], 1)


def test_no_entry_overtakes_one_that_waits() -> None:
    keyed, (a, _b) = sticky((0, 99), (100, 199))
    assert shown(keyed.choose([1, 2, 1], None, {1}, 10)) == ([("a", 1, 1)], [0, 2], 3)
    a.permits = 1
    assert shown(keyed.choose([1, 2, 1], None, (), 10)) == ([("a", 0, 1)], [1, 2], 3)


def test_out_of_order_delivery_may_overtake() -> None:
    mode = Mode(sticky=True, out_of_order=True)
    keyed = KeyShared[Taker](mode)
    keyed.attach(Taker("a"), mode, [(0, 99)])
    assert shown(keyed.choose([1, 2], None, {1}, 10)) == ([("a", 0, 2)], [], 2)
    assert keyed.draining() == {}


def test_a_hash_that_changes_hands_drains_first() -> None:
    keyed = KeyShared[Taker](ORDERED, Division(ring=False))
    a, b = Taker("a"), Taker("b")
    keyed.attach(a, ORDERED)
    for hash_ in (5, 5, 60000):
        keyed.sent(a, hash_)
    keyed.attach(b, ORDERED)  # takes the lower half
    assert keyed.owner(5) is b
    assert keyed.draining() == {5: (a, 2)}
    assert shown(keyed.choose([5, 6, 60000], None, (), 10)) == ([("b", 1, 1), ("a", 2, 1)], [0], 3)
    assert not keyed.returned(a, 5)
    assert keyed.returned(a, 5)
    assert keyed.drained_total == 1
    assert shown(keyed.choose([5], None, (), 10)) == ([("b", 0, 1)], [], 1)
    assert not keyed.returned(a, 60000)
    assert keyed.draining() == {}


def test_a_hash_that_comes_back_to_its_holder_goes_on() -> None:
    keyed = KeyShared[Taker](ORDERED, Division(ring=False))
    a, b = Taker("a"), Taker("b")
    keyed.attach(a, ORDERED)
    keyed.sent(a, 5)
    keyed.attach(b, ORDERED)
    keyed.detach(b)
    assert shown(keyed.choose([5], None, (), 10)) == ([("a", 0, 1)], [], 1)


def test_who_leaves_holds_nothing() -> None:
    keyed = KeyShared[Taker](ORDERED)
    a, b = Taker("a"), Taker("b")
    keyed.attach(a, ORDERED)
    keyed.attach(b, ORDERED)
    owner = keyed.owner(5)
    assert owner is not None
    keyed.sent(owner, 5)
    keyed.detach(owner)
    other = b if owner is a else a
    assert shown(keyed.choose([5], None, (), 10)) == ([(other.name, 0, 1)], [], 1)
    assert not keyed.returned(owner, 5)
    assert keyed.ranges_of(other) == [(1, 65535)]


def test_everybody_divides_in_the_same_way() -> None:
    keyed = KeyShared[Taker](ORDERED)
    keyed.attach(Taker("a"), ORDERED)
    for other in (Mode(sticky=True), Mode(out_of_order=True)):
        with pytest.raises(SubscriptionBusy):
            keyed.attach(Taker("b"), other, [(0, 5)])
    named = KeyShared[Taker](Mode(sticky=True))
    with pytest.raises(HashRangeTaken):
        named.attach(Taker("b"), Mode(sticky=True))


class OrderPerKey(RuleBasedStateMachine):
    """Consumers come and go, acknowledge and ask again; every key stays in order."""

    @initialize(ring=st.booleans())
    def begin(self, ring: bool) -> None:
        self.keyed = KeyShared[Taker](ORDERED, Division(ring=ring))
        self.takers: list[Taker] = []
        self.out: dict[int, Taker] = {}
        self.replay: set[int] = set()
        self.next = 0
        self.born = 0

    @staticmethod
    def hash_of(entry: int) -> int:
        return 1 + (entry * 7919) % 13 * 5000

    @rule()
    def come(self) -> None:
        if len(self.takers) < 4:
            self.born += 1
            taker = Taker(f"c{self.born}", permits=3)
            self.keyed.attach(taker, ORDERED)
            self.takers.append(taker)

    @rule(i=st.integers(0, 3))
    def go(self, i: int) -> None:
        if i < len(self.takers):
            taker = self.takers.pop(i)
            for entry in [e for e, holder in self.out.items() if holder is taker]:
                self.give_back(entry)
                self.replay.add(entry)
            self.keyed.detach(taker)

    def give_back(self, entry: int) -> None:
        self.keyed.returned(self.out.pop(entry), self.hash_of(entry))

    @rule(i=st.integers(0, 40), again=st.booleans())
    def finish(self, i: int, again: bool) -> None:
        if i < len(self.out):
            entry = sorted(self.out)[i]
            self.give_back(entry)
            if again:
                self.replay.add(entry)

    @rule(count=st.integers(1, 12), from_replay=st.booleans())
    def deal(self, count: int, from_replay: bool) -> None:
        if from_replay:
            entries, waiting = sorted(self.replay)[:count], set()
        else:
            entries = list(range(self.next, self.next + count))
            waiting = {self.hash_of(entry) for entry in self.replay}
        plan = self.keyed.choose([self.hash_of(e) for e in entries], None, waiting, 5)
        covered = list(plan.held)
        for portion in plan.portions:
            for entry in entries[portion.start : portion.start + portion.count]:
                self.deliver(portion.consumer, entry)
            covered += range(portion.start, portion.start + portion.count)
        assert sorted(covered) == list(range(plan.seen))
        self.replay |= {entries[at] for at in plan.held}
        if not from_replay:
            self.next += plan.seen

    def deliver(self, taker: Taker, entry: int) -> None:
        hash_ = self.hash_of(entry)
        assert taker in self.takers
        assert self.keyed.owner(hash_) is taker
        earlier = [e for e in self.replay if e < entry and self.hash_of(e) == hash_]
        assert not earlier
        assert all(h is taker for e, h in self.out.items() if self.hash_of(e) == hash_)
        self.replay.discard(entry)
        self.out[entry] = taker
        self.keyed.sent(taker, hash_)

    @invariant()
    def draining_is_true(self) -> None:
        if not hasattr(self, "keyed"):
            return
        expected: dict[int, tuple[Taker, int]] = {}
        for entry, holder in self.out.items():
            hash_ = self.hash_of(entry)
            if self.keyed.owner(hash_) is not holder:
                expected[hash_] = (holder, expected.get(hash_, (holder, 0))[1] + 1)
        assert self.keyed.draining() == expected


OrderPerKey.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, derandomize=True
)
TestOrderPerKey = OrderPerKey.TestCase
