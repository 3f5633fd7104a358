"""How far an open ledger may be read."""

import pytest

from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.reading.lac_read import LacRead
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.tests.bookies import LEDGER, FakeBookie, metadata
from magnetar.core.kernel.errors import StorageFailed, WireError

OPTIONS = ReadOptions()


def _asked(**ledger):
    readable = ReadableLedger(LEDGER, metadata(0, closed=False, **ledger), b"secret")
    reading = LacRead(readable, OPTIONS)
    return readable, reading, dict(reading.requests(0.0))


@pytest.mark.parametrize("kind", [LedgerMetadata.CRC32C, LedgerMetadata.HMAC])
def test_the_highest_that_any_bookie_knows(kind):
    ledger, reading, requests = _asked(kind=kind)
    assert set(requests) == {"a", "b", "c"}
    for name, bookie in {
        "b": FakeBookie(ledger, 5, lac=11),
        "a": FakeBookie(ledger, 10),  # its last entry is 9, and confirms 8
    }.items():
        assert not reading.finished
        reading.answered(name, bookie.answer3(requests[name]), 0.0)
    assert reading.finished, "E3 W3 A2: no entry is confirmed that both do not know of"
    assert reading.lac == 11
    assert reading.waited_for == ["c"]
    assert reading.requests(0.0) == []


def test_an_empty_ledger():
    ledger, reading, requests = _asked()
    for name in "abc":
        reading.answered(name, FakeBookie(ledger, 0).answer3(requests[name]), 0.0)
    assert (reading.finished, reading.lac) == (True, -1)


def test_the_last_segment_tells_that_the_ones_before_are_confirmed():
    ledger, reading, requests = _asked(segments={0: "abc", 50: "abd"})
    for name in "abd":
        reading.answered(name, FakeBookie(ledger, 0).answer3(requests[name]), 0.0)
    assert (reading.finished, reading.lac) == (True, 49)


def test_too_few_answers_are_none():
    """One answer of three, with an ack quorum of 2: two others may know more."""
    ledger, reading, requests = _asked()
    reading.answered("a", FakeBookie(ledger, 10).answer3(requests["a"]), 0.0)
    reading.lost("b", "cannot be reached", 0.0, worked=False)
    assert not reading.finished
    assert reading.deadline(0.0) == OPTIONS.timeout_seconds
    assert reading.overdue(5.0) == ["c"]
    reading.lost("c", "does not answer", 5.0, worked=False)
    with pytest.raises(StorageFailed, match="b cannot be reached; c does not answer"):
        _ = reading.finished


def test_damage_does_not_count():
    ledger, reading, requests = _asked()
    bad = FakeBookie(ledger, 10)
    bad.damaged = {9}
    for name in "ab":
        reading.answered(name, bad.answer3(requests[name]), 0.0)
    assert (reading.finished, reading.lac) == (False, -1)
    reading.answered("c", FakeBookie(ledger, 10).answer3(requests["c"]), 0.0)
    with pytest.raises(StorageFailed, match="sends damage"):
        _ = reading.finished


def test_a_response_to_something_else_is_refused():
    ledger, reading, requests = _asked()
    frame = FakeBookie(ledger, 10).answer3(requests["a"])
    with pytest.raises(WireError):
        reading.answered("b", frame, 0.0)
    reading.answered("a", frame, 0.0)
    with pytest.raises(WireError):
        reading.answered("a", frame, 0.0)
