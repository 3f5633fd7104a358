"""What open transactions hold: one message by one at most, all of it or none, over restarts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Corrupted, NotAllowed, TransactionConflict
from magnetar.core.ledger.cursor import pending_acks
from magnetar.core.ledger.cursor.acks import AckState
from magnetar.core.ledger.cursor.pending_acks import NOTHING, PendingAcks
from magnetar.core.ledger.log.chain import Chain, Segment

A, B = (0, 1), (0, 2)
"""Two transactions."""
ENTRIES, SIZE = 12, 3
"""Entries of the ledger, each with a batch of that many messages."""


def acks_of_a_log() -> AckState:
    chain = Chain()
    chain.segments = [Segment(5, 0, ENTRIES)]
    chain.confirmed = (5, ENTRIES - 1)
    return AckState(chain, (5, -1))


def without(*places: int) -> int:
    """The mask of a batch without those messages."""
    return ((1 << SIZE) - 1) & ~sum(1 << place for place in places)


@pytest.fixture
def acks() -> AckState:
    return acks_of_a_log()


@pytest.fixture
def pending(acks: AckState) -> PendingAcks:
    return PendingAcks(acks)


def test_an_entry_is_held_by_one(pending: PendingAcks) -> None:
    pending.hold(A, [(5, 2, 4)], [])
    assert [pending.covers((5, entry)) for entry in range(1, 6)] == [False, True, True, True, False]
    with pytest.raises(TransactionConflict):
        pending.hold(B, [(5, 1, 2)], [])
    assert not pending.covers((5, 1)), "none of what was refused is held"
    pending.hold(A, [(5, 3, 6)], [])
    assert pending.release(A).ranges == [(5, 2, 6)]
    pending.hold(B, [(5, 1, 2)], [])
    assert pending.keys == [B]


def test_what_is_acknowledged_is_not_held(acks: AckState, pending: PendingAcks) -> None:
    acks.ack_range(5, 0, 1)
    acks.ack_range(5, 4, 4)
    for entry in (0, 4):
        with pytest.raises(TransactionConflict):
            pending.hold(A, [(5, entry, entry)], [])
        with pytest.raises(TransactionConflict):
            pending.hold(A, [], [(5, entry, without(0), SIZE)])
    with pytest.raises(TransactionConflict):
        pending.hold_up_to(A, (5, 1, 0, 0))
    assert not pending


def test_messages_of_a_batch_are_held_by_several(acks: AckState, pending: PendingAcks) -> None:
    acks.ack_bits((5, 3), without(2), SIZE)
    pending.hold(A, [], [(5, 3, without(0), SIZE)])
    assert pending.left_of((5, 3), acks.bits((5, 3))) == 0b010
    for taken in (without(0), without(2), without(0, 1)):
        with pytest.raises(TransactionConflict):
            pending.hold(B, [], [(5, 3, taken, SIZE)])
    with pytest.raises(TransactionConflict):
        pending.hold(B, [(5, 3, 3)], [])
    pending.hold(B, [], [(5, 3, without(1), SIZE)])
    assert pending.left_of((5, 3), acks.bits((5, 3))) == 0
    assert pending.release(A).parts == [(5, 3, without(0), SIZE)]
    assert pending.left_of((5, 3), None) == without(1)


def test_what_is_held_up_to_a_position_among_consecutive_entries(pending: PendingAcks) -> None:
    for up_to in ((5, 6, 0, 0), (5, 8, without(0), SIZE), (7, 1, 0, 0)):
        pending.hold_up_to(A, up_to)
        pending.hold(A, [(5, 10, 10)], [])
        for begin in (0, 4, 7, 9):
            among = pending.held_among((5, begin), 5)
            assert among == sum(pending.covers((5, begin + at)) << at for at in range(5))
    assert pending.held_among((6, 0), 3) == 0b111
    assert pending.held_among((8, 0), 3) == 0


def test_one_transaction_acknowledges_all_up_to_a_position(pending: PendingAcks) -> None:
    pending.hold_up_to(A, (5, 3, without(0), SIZE))
    assert pending.covers((5, 2))
    assert not pending.covers((5, 3))
    assert pending.left_of((5, 3), None) == without(0)
    with pytest.raises(TransactionConflict):
        pending.hold_up_to(B, (5, 7, 0, 0))
    with pytest.raises(TransactionConflict):
        pending.hold_up_to(A, (5, 2, 0, 0))
    pending.hold_up_to(A, (5, 4, 0, 0))
    assert pending.covers((5, 4))
    assert pending.up_to(A) == (5, 4)
    assert pending.release(A).up_to == (5, 4, 0, 0)
    assert pending.release(A) is NOTHING
    assert not pending.may_cover((5, 0))


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ((0b0011, 4), (0b0111, 4), (0b0011, 4)),
        ((0b0011, 4), (0b1100, 4), (0b0000, 4)),
        ((0, 0), (0b0111, 4), (0, 0)),
        ((0b0111, 4), (0, 0), (0, 0)),
    ],
    ids=["fewer", "others", "all before", "all now"],
)
def test_up_to_the_same_batch_twice_is_what_both_acknowledge(
    pending: PendingAcks, first: tuple[int, int], second: tuple[int, int], both: tuple[int, int]
) -> None:
    pending.hold_up_to(A, (5, 3, *first))
    pending.hold_up_to(A, (5, 3, *second))
    assert pending.release(A).up_to == (5, 3, *both)


def test_who_acknowledges_up_to_a_position_passes_over_what_others_hold(
    pending: PendingAcks,
) -> None:
    """As in Pulsar; in the other order, the second one is refused."""
    pending.hold(A, [(5, 1, 1)], [])
    pending.hold_up_to(B, (5, 3, 0, 0))
    with pytest.raises(TransactionConflict):
        pending.hold(A, [(5, 2, 2)], [])
    assert pending.release(B).up_to == (5, 3, 0, 0)
    assert pending.covers((5, 1))
    assert not pending.covers((5, 2))


def test_there_is_a_limit(pending: PendingAcks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_acks, "HELD_MAX", 2)
    pending.hold(A, [(5, 0, 0), (5, 2, 2)], [])
    with pytest.raises(NotAllowed):
        pending.hold(B, [(5, 4, 4)], [])
    assert A in pending
    assert B not in pending
    assert pending.counts() == {A: 2}


def test_entries_count_however_few_ranges_they_are(
    pending: PendingAcks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions in one range would come back one by one if their transaction is aborted."""
    with pytest.raises(NotAllowed):
        pending.hold(A, [(5, 0, 1 << 60)], [])
    monkeypatch.setattr(pending_acks, "ENTRIES_MAX", 4)
    pending.hold(A, [(5, 0, 2)], [])
    pending.hold(A, [(5, 2, 2)], [])  # it holds that already
    with pytest.raises(NotAllowed):
        pending.hold(B, [(5, 4, 5)], [])
    pending.hold_up_to(B, (5, 7, 0, 0))
    pending.restore(pending.image())
    pending.release(B)
    with pytest.raises(NotAllowed):
        pending.hold(B, [(5, 4, 5)], [])
    pending.release(A)
    pending.hold(B, [(5, 4, 7)], [])


def test_an_image_that_is_none(pending: PendingAcks) -> None:
    assert pending.image() == b""
    with pytest.raises(Corrupted):
        pending.restore(b"\xc1")


PLACES = st.integers(0, ENTRIES - 1)
STEPS = st.one_of(
    st.tuples(st.just("hold"), st.integers(0, 2), PLACES, PLACES),
    st.tuples(st.just("part"), st.integers(0, 2), PLACES, st.integers(1, (1 << SIZE) - 2)),
    st.tuples(st.just("end"), st.integers(0, 2), st.booleans(), st.just(0)),
    st.tuples(st.just("ack"), st.just(0), PLACES, PLACES),
    st.tuples(st.just("restart"), st.just(0), st.just(0), st.just(0)),
)


@given(st.lists(STEPS, max_size=30))
def test_it_is_a_message_by_message_count(steps: list[tuple[str, int, int, int]]) -> None:
    """Against a model: of each message, whether it is acknowledged, and who holds it."""
    acks = acks_of_a_log()
    pending = PendingAcks(acks)
    done: set[tuple[int, int]] = set()
    held: dict[tuple[int, int], int] = {}
    for step, who, one, other in steps:
        wanted: set[tuple[int, int]] = set()
        if step in ("hold", "ack"):
            first, last = sorted((one, other))
            wanted = {(entry, at) for entry in range(first, last + 1) for at in range(SIZE)}
        elif step == "part":
            wanted = {(one, at) for at in range(SIZE) if not other >> at & 1}
        if step == "ack":
            acks.ack_range(5, *sorted((one, other)))
            done |= wanted
        elif step == "restart":
            again = PendingAcks(acks)
            again.restore(pending.image())
            pending = again
        elif step == "end":
            ended = {message for message, holder in held.items() if holder == who}
            released = pending.release((0, who))
            if one:
                for ledger_id, first, last in released.ranges:
                    acks.ack_range(ledger_id, first, last)
                for ledger_id, entry, unacked, size in released.parts:
                    acks.ack_bits((ledger_id, entry), unacked, size)
                done |= ended
            held = {message: holder for message, holder in held.items() if holder != who}
        else:
            # an entry that is acknowledged whole is refused whole; parts, where they overlap
            whole = {entry for entry, _ in wanted if all((entry, at) in done for at in range(SIZE))}
            overlap = wanted & done if step == "part" else set()
            refused = bool(whole or overlap) or any(held.get(each, who) != who for each in wanted)
            ranges = [(5, *sorted((one, other)))] if step == "hold" else []
            parts = [(5, one, other, SIZE)] if step == "part" else []
            try:
                pending.hold((0, who), ranges, parts)  # type: ignore[arg-type]  # three numbers
                assert not refused
                held.update(dict.fromkeys(wanted, who))
            except TransactionConflict:
                assert refused
    for begin in (0, 3, 7):
        among = pending.held_among((5, begin), 5)
        assert among == sum(pending.covers((5, begin + at)) << at for at in range(5))
    for entry in range(ENTRIES):
        position = (5, entry)
        left = {at for at in range(SIZE) if (entry, at) not in done and (entry, at) not in held}
        if acks.is_acked(position) or pending.covers(position):
            assert not left
            continue
        bits = pending.left_of(position, acks.bits(position))
        shown = set(range(SIZE)) if bits is None else {at for at in range(SIZE) if bits >> at & 1}
        assert shown == left


def test_the_size_of_a_batch_is_bounded_before_its_mask_is_made(pending: PendingAcks) -> None:
    """A client states it, with 31 bits: that would be 256 MB for each message."""
    for size in ((1 << 31) - 1, pending_acks.BATCH_MAX + 1, -1):
        with pytest.raises(NotAllowed):
            pending.hold(A, [], [(5, 3, 1, size)])
        with pytest.raises(NotAllowed):
            pending.hold_up_to(A, (5, 3, 1, size))
    assert not pending


def test_long_masks_count_as_several(pending: PendingAcks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_acks, "HELD_MAX", 6)
    long = 3 * pending_acks.MASK_BITS
    pending.hold(A, [], [(5, 3, 1, long)])
    pending.hold(B, [(5, 6, 6)], [])
    with pytest.raises(NotAllowed):
        pending.hold(B, [], [(5, 4, 1, long)])
    pending.restore(pending.image())
    with pytest.raises(NotAllowed):
        pending.hold(B, [], [(5, 4, 1, long)])
    pending.release(A)
    pending.hold(B, [], [(5, 4, 1, long)])


def test_neighbours_are_one_range(pending: PendingAcks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_acks, "HELD_MAX", 2)
    for entry in range(ENTRIES):
        pending.hold(A, [(5, entry, entry)], [])
    assert pending.counts() == {A: 1}


def test_ten_thousand_transactions_cost_what_one_does(
    acks: AckState, pending: PendingAcks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No question asks all of them: neither of dispatch, nor whether one may hold a message."""
    asked = 0

    def count(self: object, position: object) -> int:
        nonlocal asked
        asked += 1
        return 0

    monkeypatch.setattr(pending_acks._Held, "covers", count)
    monkeypatch.setattr(pending_acks._Held, "bits", count)
    for number in range(pending_acks.HELD_MAX):
        pending.hold((0, number), [(7, 2 * number, 2 * number)], [])
    assert pending.covers((7, 1_000))
    assert not pending.covers((7, 1_001))
    assert pending.left_of((7, 1_001), None) is None
    with pytest.raises(TransactionConflict):
        pending.hold_up_to(A, (5, -1, 0, 0))
    pending.release((0, 500))
    assert not pending.covers((7, 1_000))
    assert asked == 0
