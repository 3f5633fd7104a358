"""The latest time in a ledger that is being written. `test_time_lookup.py` has whole logs."""

from __future__ import annotations

from magnetar.core.ledger.read.latest_time import LATEST, UNKNOWN_TIME, LatestTime, latest_in
from magnetar.core.testing.entries import entry


def test_the_latest_of_a_ledger_is_noted() -> None:
    times = LatestTime()
    times.begin(mixed=True)
    assert times.noted() == UNKNOWN_TIME, "nothing was written"
    times.note([entry(published_ms=20), entry(published_ms=30)])
    times.note([entry(published_ms=10)])
    assert times.noted() == {LATEST: "30"}
    times.begin(mixed=True)
    assert times.noted() == UNKNOWN_TIME
    times.note([entry(published_ms=10)])
    assert times.noted() == {LATEST: "10"}


def test_a_ledger_that_was_not_mixed_from_its_beginning_is_unknown() -> None:
    times = LatestTime()
    times.begin(mixed=False)
    times.note([entry(published_ms=20)])
    assert times.noted() == UNKNOWN_TIME


def test_an_entry_without_metadata_has_no_time() -> None:
    assert latest_in(b"") == -1
