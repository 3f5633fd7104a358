"""A ledger's entries: where they were planned, where they are now, or not any more."""

import pytest
from msgspec.structs import replace

from magnetar.spark_connector.errors import DataLossError, RefusedError, ServiceError, lose
from magnetar.spark_connector.planning.ranges import EntryRange, between
from magnetar.spark_connector.reading import ledger_entries
from magnetar.spark_connector.reading.ledger_entries import LedgerEntries, Where
from magnetar.spark_connector.reading.tests.ledgers import DAMAGED, LOG, UNREACHED, MemoryDirectory


def numbered(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


@pytest.fixture
def directory() -> MemoryDirectory:
    """Three ledgers, of 5, 5 and 2 entries."""
    return MemoryDirectory(numbered(0, 5), numbered(5, 5), numbered(10, 2))


def planned(directory: MemoryDirectory) -> list[EntryRange]:
    now = directory.now
    return list(between(LOG, now, now.first, now.end))


class Reading:
    """What was read, and what was said to be lost."""

    def __init__(self, directory: MemoryDirectory, one: EntryRange) -> None:
        self.lost: list[str] = []
        self.found: dict[int, bytes] = {}
        with LedgerEntries(directory, one, self.lost.append, 0.0) as ledger:
            for first, entries in ledger.runs(one.first, one.last):
                self.found |= dict(enumerate(entries, first))


def test_where_they_were_planned(directory) -> None:
    reading = Reading(directory, planned(directory)[1])
    assert list(reading.found.values()) == numbered(5, 5)
    assert (reading.lost, directory.questions) == ([], 0)


def test_compaction_has_left_some_elsewhere(directory) -> None:
    one = planned(directory)[1]
    directory.compact(11, 20, [1, 4])
    reading = Reading(directory, one)
    assert (reading.found, reading.lost) == ({1: b"6", 4: b"9"}, [])


def test_compacted_twice_while_it_is_read(directory) -> None:
    directory.compact(11, 20, [0, 1, 3, 4])
    one = planned(directory)[1]
    found = {}
    with LedgerEntries(directory, one, pytest.fail, 0.0) as ledger:
        for first, (entry,) in ledger.runs(0, 4):
            found[first] = entry
            if first == 1:
                directory.stored[11] = dict(enumerate(numbered(5, 5)))
                directory.stored.pop(20).clear()
                directory.compact(11, 21, [1, 4], begin=0)
    assert found == {0: b"5", 1: b"6", 4: b"9"}


def test_what_bookies_lost_was_copied_to_others(directory) -> None:
    one = planned(directory)[1]
    directory.copied[11] = dict(directory.stored[11])
    del directory.stored[11][2]
    reading = Reading(directory, one)
    assert list(reading.found.values()) == numbered(5, 5)
    assert (reading.lost, directory.questions) == ([], 1)


def test_other_bookies_have_taken_the_place_of_one_that_is_down(directory) -> None:
    directory.copied[11] = dict(directory.stored[11])
    directory.stored[11] |= {2: UNREACHED, 3: UNREACHED}
    reading = Reading(directory, planned(directory)[1])
    assert list(reading.found.values()) == numbered(5, 5)
    assert (reading.lost, directory.questions) == ([], 0)


class Seconds:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls = {}
        """What happens after so many seconds."""

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.calls.pop(self.now, lambda: None)()


@pytest.fixture
def seconds(monkeypatch) -> Seconds:
    found = Seconds()
    monkeypatch.setattr(ledger_entries, "time", found)
    return found


def test_while_no_bookie_answers_the_server_is_asked_ever_more_rarely(directory, seconds) -> None:
    asked = []
    directory.renew = lambda *_: asked.append(seconds.now) or False
    directory.stored[11][2] = UNREACHED
    with (
        LedgerEntries(directory, planned(directory)[1], pytest.fail, 30.0) as ledger,
        pytest.raises(ServiceError, match="no bookie answers"),
    ):
        list(ledger.runs(0, 4))
    assert (asked, seconds.now) == ([0.0, 0.5, 1.5, 3.5, 7.5, 15.5], 30.0)


def test_replaced_while_it_is_asked(directory, seconds) -> None:
    whole = dict(directory.stored[11])
    directory.stored[11] = dict.fromkeys(range(5), UNREACHED)
    seconds.calls[5.0] = lambda: directory.copied.update({11: whole})
    with LedgerEntries(directory, planned(directory)[1], pytest.fail, 30.0) as ledger:
        assert [entry for _, (entry,) in ledger.runs(0, 4)] == numbered(5, 5)
    assert seconds.now == 7.5


def test_bookies_that_come_back_are_read_though_the_server_is_down(directory, seconds) -> None:
    def silent(*_: int) -> bool:
        raise ServiceError("nobody answers")

    directory.renew = silent
    directory.stored[11][2] = UNREACHED
    seconds.calls[2.0] = lambda: directory.stored[11].update({2: b"7"})
    with LedgerEntries(directory, planned(directory)[1], pytest.fail, 30.0) as ledger:
        assert [entry for _, (entry,) in ledger.runs(0, 4)] == numbered(5, 5)


@pytest.mark.parametrize("place", [0, 1])
def test_compaction_has_left_nothing(directory, place) -> None:
    """Of the first ledger neither: then the log still begins where it did."""
    one = planned(directory)[place]
    directory.compact(one.ledger_id, 20, [])
    reading = Reading(directory, one)
    assert (reading.found, reading.lost) == ({}, [])


def test_retention_has_deleted_it(directory) -> None:
    one = planned(directory)[0]
    del directory.planned[0], directory.stored[10]
    directory.first_index = 5
    reading = Reading(directory, one)
    assert reading.found == {}
    assert reading.lost == ["entries 10:0 to 4: the ledger has been deleted"]


@pytest.mark.parametrize("index", [-1, 0])
def test_without_indexes_a_ledger_that_is_gone_is_a_loss(directory, index) -> None:
    """Of entries that another broker has stored."""
    one = replace(planned(directory)[0], first_index=index, next_index=index)
    directory.planned = [replace(each, first_index=index) for each in directory.planned[1:]]
    del directory.stored[10]
    directory.first_index = index
    assert Reading(directory, one).lost == ["entries 10:0 to 4: the ledger has been deleted"]


def test_its_log_is_another_one_of_the_same_name(directory) -> None:
    """It begins at 0 too, and has as many messages and more."""
    one = planned(directory)[0]
    again = MemoryDirectory([], [], [], numbered(100, 9), [])
    again.planned = again.planned[3:]
    reading = Reading(again, one)
    assert reading.lost == ["entries 10:0 to 4: the ledger has been deleted"]


def test_lost_entries_are_named_and_the_server_is_asked_once(directory) -> None:
    del directory.stored[11][1], directory.stored[11][2]
    directory.stored[11][4] = DAMAGED
    reading = Reading(directory, planned(directory)[1])
    assert reading.found == {0: b"5", 3: b"8"}
    assert reading.lost == ["entry 1 is nowhere", "entry 2 is nowhere", "entry 4 is rotten"]
    assert directory.questions == 1


def test_a_lost_entry_of_a_compacted_ledger_has_its_own_id(directory) -> None:
    directory.compact(11, 20, [1, 3, 4])
    del directory.stored[20][4]
    reading = Reading(directory, planned(directory)[1])
    assert reading.found == {1: b"6", 4: b"9"}
    assert reading.lost == ["entry 11:3: entry 4 is nowhere"]


def test_which_ones_are_left_cannot_be_read(directory) -> None:
    directory.compact(11, 20, [1, 3])
    directory.stored[20][5] = DAMAGED
    reading = Reading(directory, planned(directory)[1])
    assert reading.found == {}
    assert reading.lost == ["entries 11:0 to 3: entry 5 is rotten"]


def test_a_loss_ends_the_query_if_it_is_to(directory) -> None:
    one = planned(directory)[1]
    del directory.stored[11][0]

    def end(what: str) -> None:
        lose(what, fails=True)

    with (
        LedgerEntries(directory, one, end, 0.0) as ledger,
        pytest.raises(DataLossError, match="entry 0 is nowhere"),
    ):
        list(ledger.runs(0, 4))


@pytest.mark.parametrize("error", [ServiceError, RefusedError])
def test_a_server_that_does_not_answer_is_no_loss(directory, error) -> None:
    one = planned(directory)[1]
    del directory.stored[11][0]

    def silent(_log: str) -> None:
        raise error("nobody answers")

    directory.plan = silent
    with pytest.raises(ServiceError, match=r"entry 0 is nowhere; .*: nobody answers"):
        Reading(directory, one)


def test_places() -> None:
    assert {each.value for each in Where} == {"moved", "compacted away", "deleted", "unmoved"}
