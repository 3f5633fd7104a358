"""Recovery against every writer that there may have been."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.client.quorum.recovery_quorums import Fencing, Proof, RecoveryRead
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.client.quorum.tests.test_striping import stripings
from magnetar.bookie.format.entries import DigestHeader


def header(entry_id: int, lac: int) -> DigestHeader:
    return DigestHeader(1, entry_id, lac, 0)


def test_the_highest_lac_counts() -> None:
    fencing = Fencing(Striping(3, 3, 2), 0)
    fencing.fenced(0, header(5, 3))
    assert fencing.proof is Proof.UNDECIDED
    fencing.fenced(2, header(4, 4))
    fencing.fenced(1, None)
    assert (fencing.proof, fencing.last_confirmed) == (Proof.FOUND, 4)


def test_the_last_segment_is_the_floor() -> None:
    """#2615: its bookies have nothing yet, or entries with an older LAC."""
    fencing = Fencing(Striping(3, 3, 2), 10)
    for position, last in enumerate((None, header(10, 7))):
        fencing.fenced(position, last)
    assert (fencing.proof, fencing.last_confirmed) == (Proof.FOUND, 9)


def test_a_hung_bookie_is_not_waited_for() -> None:
    """#1067."""
    fencing = Fencing(Striping(3, 3, 2), 0)
    fencing.fenced(0, None)
    fencing.fenced(2, None)
    assert fencing.proof is Proof.FOUND
    read = RecoveryRead(Striping(3, 3, 2), 0)
    read.missing(0)
    assert read.proof is Proof.UNDECIDED
    read.missing(2)
    assert read.proof is Proof.MISSING


def test_too_few_answers_are_no_answer() -> None:
    fencing, read = Fencing(Striping(3, 3, 2), 0), RecoveryRead(Striping(3, 3, 2), 0)
    for position in (0, 1):
        fencing.failed(position)
        read.failed(position)
    assert (fencing.proof, read.proof) == (Proof.UNDECIDED, Proof.UNDECIDED)
    fencing.fenced(2, None)
    read.missing(2)
    assert (fencing.proof, read.proof) == (Proof.LOST, Proof.LOST)


def test_one_copy_is_enough() -> None:
    read = RecoveryRead(Striping(3, 3, 2), 0)
    read.missing(0)
    read.found(1, b"entry")
    read.missing(2)
    assert (read.proof, read.entry) == (Proof.FOUND, b"entry")


def quorums(striping: Striping, entry_id: int) -> list[set[int]]:
    return [set(one) for one in combinations(striping.write_set(entry_id), striping.ack)]


@given(stripings(), st.integers(0, 20), st.data())
def test_a_confirmed_entry_is_never_missing(
    striping: Striping, entry_id: int, data: st.DataObject
) -> None:
    """Whatever quorum acknowledged it, whoever answers, and in whatever order."""
    having = data.draw(st.sampled_from(quorums(striping, entry_id)))
    read = RecoveryRead(striping, entry_id)
    for position in data.draw(st.permutations(read.write_set)):
        if data.draw(st.booleans()):
            read.failed(position)
        elif position in having:
            read.found(position, b"entry")
        else:
            read.missing(position)
        assert read.proof is not Proof.MISSING
    assert read.proof in (Proof.FOUND, Proof.LOST)


@given(stripings(), st.data())
def test_nothing_is_confirmed_behind_a_fence(striping: Striping, data: st.DataObject) -> None:
    fencing = Fencing(striping, 0)
    fenced: set[int] = set()
    for position in data.draw(st.permutations(range(striping.ensemble))):
        before = fencing.proof
        if data.draw(st.booleans()):
            fencing.failed(position)
        else:
            fencing.fenced(position, None)
            fenced.add(position)
        assert before in (Proof.UNDECIDED, fencing.proof)  # what is decided stays decided
    for entry_id in range(striping.ensemble):
        for quorum in quorums(striping, entry_id):
            if fencing.proof is Proof.FOUND:
                assert quorum & fenced
    assert fencing.proof is not Proof.UNDECIDED


@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3, 2), (4, 2, 1), (3, 3, 3)])
def test_an_entry_that_nobody_has_is_missing_as_soon_as_it_can_be(
    sizes: tuple[int, int, int],
) -> None:
    striping = Striping(*sizes)
    read = RecoveryRead(striping, 1)
    for count, position in enumerate(read.write_set):
        decided = count >= striping.write - striping.ack + 1
        assert read.proof is (Proof.MISSING if decided else Proof.UNDECIDED)
        read.missing(position)
