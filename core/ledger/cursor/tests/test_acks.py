"""The algebra against a model that keeps a plain set of positions."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from magnetar.core.ledger.cursor.acks import AckState, Ranges
from magnetar.core.ledger.log.chain import START, Chain, Position, Segment

BATCH = 6
LEDGERS = st.sampled_from([3, 3, 3, 6, 6, 6, 9, 9, 12, 0, 5, 13])
"""Mostly such as exist, as only those get far."""
ENTRIES = st.one_of(st.integers(0, 9), st.integers(0, 9), st.integers(-3, 40))


def chain_of(*entries: int) -> Chain:
    """Ledgers 3, 6, 9, ... with so many entries each; the last one may be read to its end."""
    chain = Chain()
    for i, count in enumerate(entries, 1):
        chain.segments.append(Segment(3 * i, 0, count, closed_ms=1))
        if count:
            chain.confirmed = (3 * i, count - 1)
    return chain


class AcksAgainstSets(RuleBasedStateMachine):
    @initialize(entries=st.lists(st.sampled_from([0, 1, 4, 8, 12]), max_size=3))
    def begin(self, entries: list[int]) -> None:
        self.chain = chain_of(*entries)
        self.acks = AckState(self.chain, START)
        self.acked: set[Position] = set()
        self.bits: dict[Position, int] = {}

    def existing(self) -> list[Position]:
        return [
            (segment.ledger_id, entry_id)
            for segment in self.chain.segments
            for entry_id in range(segment.entries)
        ]

    @rule(count=st.integers(1, 6))
    def append(self, count: int) -> None:
        if not self.chain.segments:
            return
        segment = self.chain.segments[-1]
        segment.entries += count
        self.chain.confirmed = (segment.ledger_id, segment.entries - 1)

    @rule()
    def roll(self) -> None:
        if len(self.chain.segments) < 4:
            self.chain.segments.append(Segment(3 * len(self.chain.segments) + 3, 0))

    @rule(ledger=LEDGERS, first=ENTRIES, length=st.integers(0, 10))
    def ack_range(self, ledger: int, first: int, length: int) -> None:
        expected_value = {(ledger, e) for e in range(first, first + length)} & set(self.existing())
        new = expected_value - self.acked
        assert self.acks.ack_range(ledger, first, first + length - 1) == len(new)
        self.done_with(new)

    def done_with(self, positions: set[Position]) -> None:
        self.acked |= positions
        for position in positions:
            self.bits.pop(position, None)

    @rule(ledger=LEDGERS, entry=ENTRIES, unacked=st.integers(0, 2**BATCH + 3), sized=st.booleans())
    def ack_bits(self, ledger: int, entry: int, unacked: int, sized: bool) -> None:
        position = (ledger, entry)
        completes = self.model_bits(position, unacked & (2**BATCH - 1) if sized else unacked)
        assert self.acks.ack_bits(position, unacked, BATCH if sized else 0) is completes

    def model_bits(self, position: Position, unacked: int) -> bool:
        if position in self.acked or position not in self.existing():
            return False
        left = self.bits.get(position, -1) & unacked
        if not left:
            self.done_with({position})
            return True
        self.bits[position] = left
        return False

    @rule(ledger=LEDGERS, entry=ENTRIES, unacked=st.none() | st.integers(0, 2**BATCH - 1))
    def cumulative(self, ledger: int, entry: int, unacked: int | None) -> None:
        position = (ledger, entry)
        existing = self.existing()
        before = {p for p in existing if p <= position} - self.acked
        if unacked is not None and position <= self.chain.confirmed:
            before.discard(position)
        expected = len(before)
        self.done_with(before)
        if unacked is not None:
            expected += self.model_bits(position, unacked)
        assert self.acks.cumulative(position, unacked, BATCH) == expected

    @rule(ledger=LEDGERS, entry=ENTRIES)
    def reset(self, ledger: int, entry: int) -> None:
        position = min((ledger, max(entry, -1)), self.chain.confirmed)
        self.acks.reset(position)
        self.acked = {p for p in self.existing() if p <= position}
        self.bits = {}

    @rule(ranges_max=st.integers(0, 5))
    def save_and_restore(self, ranges_max: int) -> None:
        """What is beyond the limit is forgotten, never acknowledged falsely."""
        kept = AckState(self.chain, START)
        kept.restore(
            self.acks.mark_delete, self.acks.ranges(ranges_max), self.acks.partial(ranges_max)
        )
        for position in self.existing():
            assert self.acks.is_acked(position) or not kept.is_acked(position)
        assert len(kept) == min(ranges_max, len(self.acks))
        whole = AckState(self.chain, START)
        whole.restore(self.acks.mark_delete, self.acks, self.acks.partial(1000))
        assert whole.mark_delete == self.acks.mark_delete
        assert list(whole) == list(self.acks)
        assert whole.acked_beyond == self.acks.acked_beyond
        self.acks = whole

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "acks"):
            return
        acks, chain = self.acks, self.chain
        existing = self.existing()
        for position in existing:
            assert acks.is_acked(position) is (position in self.acked)
            # an unlimited model mask cannot tell "all of the batch" from "nothing known"
            known = self.bits.get(position)
            assert acks.bits(position) in ((None, known) if known == 2**BATCH - 1 else (known,))
        for ledger_id, first in [*existing, (0, 0)][::3]:
            among = acks.acked_among((ledger_id, first), 5)
            assert among < 1 << 5
            for at in range(5):
                position = (ledger_id, first + at)
                assert position not in existing or among >> at & 1 == (position in self.acked)
        unacked = [p for p in existing if p not in self.acked]
        backlog = chain.entries_between(acks.mark_delete, chain.confirmed) - acks.acked_beyond
        assert backlog == len(unacked)
        assert acks.acked_beyond == len([p for p in self.acked if p > acks.mark_delete])
        assert acks.next_unacked(START) == (unacked[0] if unacked else chain.after(chain.confirmed))
        if unacked:
            assert acks.mark_delete < unacked[0]
        if not acks.holed:
            assert acks.acked_beyond == 0
        highest = acks.highest
        assert acks.is_acked(highest) or acks.bits(highest) is not None
        known = [p for p in existing if p in self.acked or acks.bits(p) is not None]
        assert highest >= max(known, default=START)
        self.ranges_are_tidy()

    def ranges_are_tidy(self) -> None:
        ranges = list(self.acks)
        assert ranges == sorted(ranges)
        for lower, upper in ranges:
            assert lower[0] == upper[0]
            assert lower < upper
            assert upper > self.acks.mark_delete
            assert self.chain.after(self.acks.mark_delete) <= lower or lower[1] == -1
        for (_, upper), (lower, _) in pairwise(ranges):
            assert upper < lower


AcksAgainstSets.TestCase.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, derandomize=True
)
TestAcksAgainstSets = AcksAgainstSets.TestCase


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=30))
def test_ranges_are_a_set_of_numbers(additions: list[tuple[int, int]]) -> None:
    ranges, model = Ranges(), set()
    for first, more in additions:
        expected_value = set(range(first, first + more + 1))
        assert ranges.add(first, first + more) == len(expected_value - model)
        model |= expected_value
        assert ranges.count() == len(model)
    for number in range(50):
        last = ranges.last_of_range(number)
        assert (last is not None) is (number in model)
        assert last is None or last + 1 not in model
    cut = 20
    assert ranges.drop_up_to(cut) == len([n for n in model if n <= cut])
    assert ranges.count() == len([n for n in model if n > cut])


def test_acknowledgements_in_order_move_the_mark_over_the_end_of_a_ledger() -> None:
    acks = AckState(chain_of(2, 0, 3), START)
    for entry_id, position in [(0, (3, 0)), (1, (3, 1))]:
        assert acks.ack_range(3, entry_id, entry_id) == 1
        assert acks.mark_delete == position
    assert acks.ack_range(9, 0, 0) == 1
    assert acks.mark_delete == (9, 0)
    assert not acks.holed


def test_a_hole_that_closes_at_the_end_of_a_ledger_lets_the_next_one_in() -> None:
    acks = AckState(chain_of(3, 3), START)
    acks.ack_range(6, 0, 1)
    acks.ack_range(3, 1, 2)
    assert (acks.mark_delete, acks.acked_beyond, len(acks)) == (START, 4, 2)
    assert acks.next_unacked((3, 1)) == (6, 2)
    acks.ack_range(3, 0, 0)
    assert (acks.mark_delete, acks.acked_beyond, len(acks)) == ((6, 1), 0, 0)


def test_everything_up_to_a_position_swallows_what_lies_between() -> None:
    acks = AckState(chain_of(6, 6, 6), START)
    for ledger_id, first, last in [(3, 2, 3), (6, 1, 4), (9, 0, 0), (9, 4, 4)]:
        acks.ack_range(ledger_id, first, last)
    acks.ack_bits((6, 0), 1, 3)
    acks.ack_bits((9, 2), 1, 3)
    assert acks.cumulative((6, 2)) == 6 - 2 + 1
    assert (acks.mark_delete, acks.acked_beyond) == ((6, 4), 2)
    assert acks.partial(9) == [((9, 2), 1)]
    assert acks.cumulative((9, 2), 0b011, 3) == 1 + 1  # 6:5 and 9:1
    assert acks.mark_delete == (9, 1)
    assert acks.bits((9, 2)) == 1
    assert list(acks) == [((9, 3), (9, 4))]
    assert acks.cumulative((9, 2), 0b100, 3) == 1
    assert acks.bits((9, 2)) is None
    assert acks.cumulative((9, 10**9), 0b100, 3) == 2
    assert not acks.holed


def test_bits_go_with_entries_acknowledged_in_order() -> None:
    acks = AckState(chain_of(6), (3, 0))
    acks.ack_bits((3, 1), 1, 3)
    acks.ack_bits((3, 4), 1, 3)
    acks.ack_range(3, 1, 2)
    assert acks.partial(9) == [((3, 4), 1)]


def test_a_batch_is_acknowledged_message_by_message() -> None:
    acks = AckState(chain_of(3), (3, 0))
    assert not acks.ack_bits((3, 1), 0b111, 3)  # nothing of it: nothing to remember
    assert acks.bits((3, 1)) is None
    assert not acks.ack_bits((3, 1), 0b101, 3)
    assert acks.bits((3, 1)) == 0b101
    assert not acks.ack_bits((3, 1), 0b110, 3)
    assert acks.bits((3, 1)) == 0b100
    assert acks.ack_bits((3, 1), 0b011, 3)
    assert acks.bits((3, 1)) is None
    assert acks.mark_delete == (3, 1)
    assert not acks.ack_bits((3, 1), 0, 3)


@pytest.mark.parametrize("position", [(3, 10**9), (7, 0), (2**63, 2**63), (-1, -1), (3, -5)])
def test_what_does_not_exist_cannot_be_acknowledged(position: Position) -> None:
    acks = AckState(chain_of(3), (3, 0))
    assert acks.ack_range(*position, position[1]) == 0
    assert not acks.ack_bits(position, 0, 0)
    assert acks.mark_delete == (3, 0)
    assert not acks.holed


def test_a_huge_batch_size_costs_nothing() -> None:
    acks = AckState(chain_of(3), START)
    assert not acks.ack_bits((3, 1), 0b10, 2**62)
    assert acks.bits((3, 1)) == 0b10


def test_ranges_that_cross_ledgers_are_understood() -> None:
    acks = AckState(chain_of(4, 2, 5), START)
    acks.restore((3, 0), [((3, 1), (9, 1)), ((70, 0), (70, 4))], [((9, 3), 5), ((80, 0), 1)])
    assert list(acks) == [((3, 1), (3, 3)), ((6, -1), (6, 1)), ((9, -1), (9, 1))]
    assert acks.partial(10) == [((9, 3), 5)]
    assert acks.partial(0) == []


def test_thousands_of_bits_are_dropped_together() -> None:
    acks = AckState(chain_of(1000), START)
    for entry_id in range(1, 500):
        acks.ack_bits((3, entry_id), 1, 2)
    acks.ack_range(3, 1, 998)
    assert acks.partial(1000) == []
    assert acks.holed
