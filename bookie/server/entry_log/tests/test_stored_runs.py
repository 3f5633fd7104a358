"""Runs found in entry logs, and those that only look like them."""

import pytest

from magnetar.bookie.format.entries import LENGTH_BYTES, rest, seal
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.stored_runs import StoredRuns
from magnetar.bookie.server.entry_log.writer import EntryLogWriter, log_ids
from magnetar.core.testing.memory_disk import MemoryDisk


class Logs:
    """Each life's runs are in one log."""

    def __init__(self):
        self.disk = MemoryDisk()
        self.directory = self.disk.directory("/logs")
        self.locations = []

    def live(self, *runs):
        writer = EntryLogWriter(self.directory, 1 << 20)
        self.locations.append([writer.append(run) for run in runs])
        writer.sync()
        writer.abandon()

    def stored(self, *wanted, journal_bytes=1 << 20):
        reader = EntryLogReader(self.directory, SystemThreads().lock())
        stored = StoredRuns(reader)
        for run in wanted:
            stored.want(run)
        stored.scan(reversed(log_ids(self.directory)), journal_bytes)
        return stored


def run(ledger_id, first, count, body=b"x"):
    return seal(ledger_id, first, -1, 0, [body * 10] * count)


@pytest.fixture
def logs():
    return Logs()


def test_a_run_is_found_within_a_longer_one_and_over_two(logs):
    whole = run(1, 0, 9)
    logs.live(run(2, 5, 3), whole)
    at = logs.locations[0][1]
    stored = logs.stored(whole)
    assert stored.find(whole) == at
    for count in (1, 4, 8):
        assert stored.find(rest(whole, count)) == at + whole.offsets[count]
    assert stored.find(run(2, 5, 3)) is None, "it was not wanted"


def test_of_runs_with_the_same_ids_the_one_with_the_same_bytes_is_found(logs):
    one, other, third = [run(1, 4, 3, body) for body in (b"a", b"b", b"c")]
    logs.live(one)
    logs.live(run(1, 0, 5, b"z"), other)
    stored = logs.stored(one)
    assert stored.find(one) == logs.locations[0][0]
    assert stored.find(other) == logs.locations[1][1]
    assert stored.find(third) is None


def test_a_run_that_goes_on_elsewhere_is_not_found(logs):
    """It would be read on with the bytes behind it."""
    whole = run(1, 0, 4)
    logs.live(run(1, 0, 2), run(2, 0, 1))
    stored = logs.stored(whole)
    assert stored.find(whole) is None
    assert stored.find(run(1, 0, 2)) is not None


def test_a_byte_that_changed_since_the_scan_is_seen(logs):
    one = run(1, 0, 2)
    logs.live(one)
    stored = logs.stored(one)
    offset = logs.locations[0][0] - LENGTH_BYTES
    logs.disk.rot("/logs/0.log", offset + one.offsets[1] + 41)
    assert stored.find(one) is None


def test_older_logs_are_not_read_once_enough_was(logs):
    one = run(1, 0, 2)
    logs.live(one)
    logs.live(run(2, 0, 100))
    assert logs.stored(one, journal_bytes=one.size).find(one) is None
    assert logs.stored(one, journal_bytes=8192).find(one) is not None


def test_a_log_that_makes_no_sense_is_passed_over(logs, caplog):
    one = run(1, 0, 2)
    logs.live(one)
    logs.live(one)
    logs.disk.rot("/logs/1.log", 0)
    assert logs.stored(one).find(one) == logs.locations[0][0]
    assert "entry log 1 cannot be read to spare room" in caplog.text
