"""Reading a range: bookies that answer, that answer badly, and that do not answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.reading.errors import DamagedEntry, MissingEntry, UnreachableEntry
from magnetar.bookie.reading.health import BookieHealth
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.range_read import RangeRead
from magnetar.bookie.reading.tests.bookies import LEDGER, FakeBookie, metadata, payload
from magnetar.bookie.rpc.messages import BatchRead, Status
from magnetar.core.kernel.errors import WireError

OPTIONS = ReadOptions(batch_bytes=200, read_ahead_bytes=1000)


class Reading:
    """A range that is read from bookies in memory; nothing moves unless a test moves it."""

    def __init__(self, count=100, first=0, last=None, options=OPTIONS, **ledger):
        self.ledger = ReadableLedger(LEDGER, metadata(count, **ledger))
        names = {
            each for segment in self.ledger.metadata.segment for each in segment.ensembleMember
        }
        self.bookies = {name: FakeBookie(self.ledger, count) for name in sorted(names)}
        self.health = BookieHealth(options.avoid_seconds)
        self.options = options
        self.now = 0.0
        self.silent = set()
        """Bookies that do not answer; their requests wait here."""
        self.gone = set()
        """Bookies to which no connection can be made."""
        self.waiting = []
        self.found = []
        self.first = first
        self.begin(first, count - 1 if last is None else last)

    def begin(self, first, last):
        self.range = RangeRead(self.ledger, first, last, self.options, self.health)

    def ask(self):
        """Send what is to be sent; bookies answer, but for the silent ones."""
        while requests := self.range.requests(self.now):
            for bookie, body in requests:
                if bookie in self.gone:
                    self.range.lost(bookie, "cannot be reached", self.now, worked=False)
                elif bookie in self.silent:
                    self.waiting.append((bookie, body))
                else:
                    self.answer(bookie, body)

    def answer(self, bookie, body):
        self.range.heard(bookie, self.now)
        self.range.answered(bookie, self.bookies[bookie].answer(body), self.now)

    def take(self):
        while (run := self.range.take()) is not None:
            assert run.first == self.first + len(self.found)
            self.found += run.payloads

    def read(self):
        """Everything, while bookies answer at once."""
        while not self.range.finished:
            self.ask()
            before = len(self.found)
            self.take()
            assert len(self.found) > before, "nothing moves"
        assert self.found == [payload(self.first + i) for i in range(len(self.found))]
        return self.found

    def asked(self):
        """Of whom how much was asked."""
        return {name: len(bookie.asked) for name, bookie in self.bookies.items() if bookie.asked}


@pytest.mark.parametrize(
    "kind",
    [LedgerMetadata.CRC32C, LedgerMetadata.CRC32, LedgerMetadata.HMAC, LedgerMetadata.DUMMY],
)
@pytest.mark.parametrize("quorums", [(3, 2), (2, 2), (1, 1)])
def test_all_of_a_ledger(kind, quorums):
    reading = Reading(kind=kind, quorums=quorums)
    assert len(reading.read()) == 100
    assert set(reading.asked()) == {"a", "b", "c"}


def test_a_part_over_segments():
    reading = Reading(first=5, last=94, segments={0: "abc", 40: "dbc", 41: "dea"})
    assert len(reading.read()) == 90
    batches = [each for bookie in reading.bookies.values() for each in bookie.asked]
    assert {each.first for each in batches} >= {5, 40, 41}


def test_batches_where_every_bookie_has_everything_else_single_reads():
    reading = Reading()
    reading.read()
    requests = [each for bookie in reading.bookies.values() for each in bookie.asked]
    assert all(isinstance(each, BatchRead) for each in requests)
    assert len(requests) < 20
    reading = Reading(quorums=(2, 2))
    reading.read()
    assert sum(reading.asked().values()) == 100


def test_no_more_is_asked_for_than_is_to_be_read_ahead():
    reading = Reading(count=1000)
    reading.silent = {"a", "b", "c"}
    reading.ask()
    assert len(reading.waiting) == 1000 // 200
    reading.silent = set()
    for bookie, body in reading.waiting:
        reading.answer(bookie, body)
    reading.ask()
    assert sum(reading.asked().values()) == 5, "what waits to be taken counts"
    reading.read()


def test_answers_in_any_order_are_taken_in_order():
    reading = Reading(quorums=(2, 2))
    reading.silent = {"a", "b", "c"}
    reading.ask()
    for bookie, body in reversed(reading.waiting):
        assert reading.range.take() is None
        reading.answer(bookie, body)
    reading.take()
    assert reading.found == [payload(i) for i in range(len(reading.waiting))]


def test_batches_that_end_early_are_asked_on():
    reading = Reading()
    for bookie in reading.bookies.values():
        bookie.count_max = 3
    reading.read()


def test_damage_and_gaps_are_filled_from_the_next_replica():
    reading = Reading()
    reading.bookies["a"].damaged = {0, 17, 50, 51}
    reading.bookies["b"].missing = {3, 18, 60}
    reading.bookies["c"].statuses = {4: Status.IO_ERROR, 70: Status.UNKNOWN_LEDGER_STATE}
    reading.read()


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)])
@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda bookies: [bookie.missing.add(42) for bookie in bookies], MissingEntry),
        (lambda bookies: [bookie.damaged.add(42) for bookie in bookies], DamagedEntry),
        (
            lambda bookies: [bookie.statuses.update({42: Status.IO_ERROR}) for bookie in bookies],
            DamagedEntry,
        ),
        (
            lambda bookies: [
                bookie.statuses.update({42: Status.TOO_MANY_REQUESTS}) for bookie in bookies
            ],
            UnreachableEntry,
        ),
    ],
)
def test_what_no_replica_has_ends_the_range_behind_what_they_have(quorums, wrong, kind):
    reading = Reading(quorums=quorums)
    wrong(reading.bookies.values())
    with pytest.raises(kind, match="5:42") as error:
        reading.read()
    assert error.value.entry_id == 42
    assert reading.found == [payload(i) for i in range(42)]


def test_one_that_cannot_be_reached_makes_it_uncertain_that_there_is_none():
    reading = Reading()
    reading.gone = {"a"}
    for bookie in reading.bookies.values():
        bookie.missing = {42}
    with pytest.raises(UnreachableEntry, match="a cannot be reached"):
        reading.read()


def test_a_bookie_that_cannot_be_reached_is_not_asked_again_and_again():
    reading = Reading(count=1000)
    reading.gone = {"a"}
    reading.read()
    reading.gone = set()
    reading.begin(0, 999)
    reading.found = []
    reading.read()
    assert "a" not in reading.asked()
    reading.now += OPTIONS.avoid_seconds
    reading.begin(0, 999)
    reading.found = []
    reading.read()
    assert reading.asked()["a"] > 0


def test_a_connection_that_ends_is_made_once_more():
    reading = Reading(segments={0: "a"}, quorums=(1, 1))
    reading.bookies["a"].count_max = 1  # it has sent a batch before
    reading.read()
    reading.begin(0, 99)
    reading.found = []
    reading.silent = {"a"}
    reading.ask()
    reading.range.lost("a", "left", 0.0, worked=True)
    reading.silent = set()
    reading.read()
    assert isinstance(reading.bookies["a"].asked[-1], BatchRead)


def test_a_connection_that_ends_again_is_given_up():
    reading = Reading(segments={0: "a"}, quorums=(1, 1))
    reading.silent = {"a"}
    for _ in range(2):
        reading.ask()
        reading.range.lost("a", "left", 0.0, worked=True)
    with pytest.raises(UnreachableEntry, match="a left"):
        reading.read()


def test_a_bookie_without_batches_is_asked_for_single_entries():
    reading = Reading(segments={0: "a"}, quorums=(1, 1))
    reading.silent = {"a"}
    reading.ask()
    reading.range.lost("a", "left", 0.0, worked=True)
    reading.silent = set()
    reading.read()
    assert not any(isinstance(each, BatchRead) for each in reading.bookies["a"].asked)


def test_a_bookie_that_refuses_batches_is_asked_for_single_entries():
    reading = Reading(segments={0: "a"}, quorums=(1, 1))
    bookie = reading.bookies["a"]
    bookie.statuses = dict.fromkeys(range(100), Status.BAD_REQUEST)
    reading.silent = {"a"}
    reading.ask()
    for waiting in reading.waiting:
        reading.answer(*waiting)
    bookie.statuses, bookie.asked, reading.silent = {}, [], set()
    reading.read()
    assert not any(isinstance(each, BatchRead) for each in bookie.asked)


def test_a_silent_bookie_is_passed_over():
    """The next replica is asked too, and the late answer does no harm."""
    reading = Reading()
    reading.silent = {"a"}
    reading.ask()
    late = reading.waiting[:]
    assert late
    assert reading.range.deadline(0.0) == OPTIONS.speculative_seconds
    reading.now = OPTIONS.speculative_seconds
    assert reading.range.overdue(reading.now) == []
    reading.ask()
    reading.take()
    assert reading.found
    reading.silent = set()
    for waiting in late:
        reading.answer(*waiting)
    reading.read()


def test_after_a_hedge_the_slow_bookie_is_asked_last():
    reading = Reading(count=1000)
    reading.silent = {"a"}
    reading.ask()
    reading.now = OPTIONS.speculative_seconds
    reading.range.overdue(reading.now)
    waited = len(reading.waiting)
    reading.read()
    assert len(reading.waiting) == waited


def test_bytes_that_come_are_a_sign_of_life():
    reading = Reading()
    reading.silent = {"a", "b", "c"}
    reading.ask()
    waiting = len(reading.waiting)
    reading.now = OPTIONS.speculative_seconds
    for bookie in "abc":
        reading.range.heard(bookie, reading.now - 0.1)
    assert reading.range.overdue(reading.now) == []
    reading.ask()
    assert len(reading.waiting) == waiting


def test_a_bookie_that_stays_silent_is_given_up():
    reading = Reading(segments={0: "a"}, quorums=(1, 1))
    reading.silent = {"a"}
    reading.ask()
    reading.now = OPTIONS.speculative_seconds
    assert reading.range.overdue(reading.now) == []
    assert reading.range.deadline(reading.now) == OPTIONS.timeout_seconds
    reading.now = OPTIONS.timeout_seconds
    assert reading.range.overdue(reading.now) == ["a"]
    reading.range.lost("a", "does not answer", reading.now, worked=False)
    with pytest.raises(UnreachableEntry, match="a does not answer"):
        reading.read()


def test_a_response_to_something_else_is_refused():
    reading = Reading(quorums=(2, 2))
    reading.silent = {"a"}
    reading.ask()
    frame = reading.bookies["a"].answer(reading.waiting[0][1])
    other = frame[:8] + bytes(8) + frame[16:]
    with pytest.raises(WireError):
        reading.range.answered("a", other, 0.0)
    for size in (0, 3, 23):
        with pytest.raises(WireError):
            reading.range.answered("a", frame[:size], 0.0)


def test_nothing_is_waited_for_in_the_end():
    reading = Reading()
    reading.silent = {"a"}
    reading.ask()
    assert reading.range.waited_for == ["a"]
    for waiting in reading.waiting:
        reading.answer(*waiting)
    assert reading.range.waited_for == []


TROUBLES = st.sampled_from(["missing", "damaged", "io error"])


@given(
    st.sampled_from([(3, 2), (2, 2)]),
    st.dictionaries(st.integers(0, 59), st.tuples(st.sampled_from("abc"), TROUBLES)),
    st.sets(st.sampled_from("abc"), max_size=1),
    st.integers(1, 20),
)
def test_one_intact_replica_is_enough(quorums, troubles, gone, count_max):
    """Each entry has trouble on one bookie at most, and then all bookies can be reached."""
    reading = Reading(count=60, quorums=quorums)
    if troubles:
        gone = set()
    reading.gone = gone
    for bookie in reading.bookies.values():
        bookie.count_max = count_max
    for entry_id, (name, trouble) in troubles.items():
        bookie = reading.bookies[name]
        if trouble == "io error":
            bookie.statuses[entry_id] = Status.IO_ERROR
        else:
            getattr(bookie, trouble).add(entry_id)
    assert len(reading.read()) == 60
