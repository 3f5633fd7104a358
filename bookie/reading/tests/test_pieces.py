"""One piece of a range, whoever sends which part of it."""

from magnetar.bookie.reading.errors import Answer, MissingEntry, Trouble
from magnetar.bookie.reading.pieces import RangePiece

DAMAGED = Answer(Trouble.DAMAGED, "cannot read it")
MISSING = Answer(Trouble.MISSING, "has no such entry")
GONE = Answer(Trouble.UNREACHABLE, "left")


def test_parts_join_whatever_overlaps() -> None:
    piece = RangePiece(10, 14, "ab")
    assert piece.take(10, [b"10", b"11"])
    assert not piece.take(10, [b"10"])
    assert piece.take(11, [b"11", b"12", b"13"])
    assert not piece.whole
    assert piece.take(14, [b"14", b"15", b"16"])
    assert piece.payloads == [b"10", b"11", b"12", b"13", b"14"]
    assert piece.whole


def test_bookies_are_asked_in_order_and_once_for_an_entry() -> None:
    piece = RangePiece(10, 14, "abc")
    assert piece.candidate() == "a"
    piece.waiting["a"] = 0.0
    piece.refused("b", 10, DAMAGED)
    assert piece.candidate() == "c"
    piece.refused("c", 10, MISSING)
    assert piece.candidate() is None


def test_what_was_said_of_one_entry_means_nothing_for_the_next() -> None:
    piece = RangePiece(10, 14, "abc")
    piece.refused("a", 10, DAMAGED)
    piece.answers["b"] = GONE
    piece.take(10, [b"10"])
    piece.refused("c", 10, MISSING)  # late
    assert piece.answers == {"b": GONE}
    piece.refused("a", 11, MISSING)
    assert set(piece.answers) == {"a", "b"}


def test_a_failure_names_the_entry() -> None:
    piece = RangePiece(10, 14, "a")
    piece.take(10, [b"10"])
    piece.refused("a", 11, MISSING)
    piece.fail(5)
    assert isinstance(piece.error, MissingEntry)
    assert piece.error.entry_id == 11
