"""A ledger opened for reading, from bookies on real sockets."""

import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.reading.errors import DamagedEntry, MissingEntry, UnreachableEntry
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.read_handle import open_ledger
from magnetar.bookie.reading.tests.bookies import LEDGER, FakeBookie, listening, metadata, payload
from magnetar.bookie.rpc.messages import BatchRead
from magnetar.core.kernel.errors import (
    EntryNotFound,
    Invalid,
    LedgerNotFound,
    StorageFailed,
)

OPTIONS = ReadOptions(batch_bytes=500, speculative_seconds=0.2, timeout_seconds=1.0)


class Cluster:
    """A source of ledgers: one ledger, whose metadata a test changes, and its bookies."""

    def __init__(self, made, count):
        self.made = made
        self.bookies = {name: FakeBookie(ReadableLedger(LEDGER, made), count) for name in "abcd"}
        self.addresses = {}
        self.silent = set()
        self.lacs_asked = 0
        self.leaving = set()
        """Bookies that end each connection on which they are asked for a batch."""

    def metadata(self, ledger_id):
        if ledger_id != LEDGER:
            raise LedgerNotFound(f"there is no ledger {ledger_id}")
        return ledger_metadata.encode(self.made)

    def address(self, bookie):
        return self.addresses[bookie]

    def proof(self, ledger_id):
        return None

    def answer(self, name, body):
        if name in self.silent:
            return None
        bookie = self.bookies[name]
        if not body.startswith(b"\x02"):
            self.lacs_asked += 1
            return bookie.answer3(body)
        answered = bookie.answer(body)
        if name in self.leaving and isinstance(bookie.asked[-1], BatchRead):
            raise EOFError
        return answered


@contextmanager
def cluster(count=100, **ledger):
    made = Cluster(metadata(count, **ledger), count)
    with ExitStack() as servers:
        for name in made.bookies:
            one = listening(lambda body, name=name: made.answer(name, body))
            made.addresses[name] = servers.enter_context(one)
        yield made


def opened(source, **more):
    return open_ledger(LEDGER, source, OPTIONS, **more)


def texts(count, first=0):
    return [(i, payload(i)) for i in range(first, first + count)]


@pytest.mark.parametrize("quorums", [(3, 2), (2, 2)])
def test_a_closed_ledger(quorums):
    with cluster(quorums=quorums) as source, opened(source) as ledger:
        assert ledger.last_confirmed() == 99
        assert list(ledger.entries()) == texts(100)
        assert list(ledger.entries(10, 20)) == texts(11, 10)
        assert list(ledger.entries(50, 49)) == []
        assert sum(len(run.payloads) for run in ledger.read()) == 100


def test_an_open_ledger_is_read_as_far_as_it_is_confirmed():
    with cluster(closed=False) as source, opened(source) as ledger:
        assert ledger.last_confirmed() == 98
        assert list(ledger.entries()) == texts(99)
        with pytest.raises(EntryNotFound, match="5:99 is not confirmed"):
            list(ledger.read(0, 99))
        for bookie in source.bookies.values():
            bookie.lac = 99
        assert list(ledger.entries(98, 99)) == texts(2, 98)


def test_a_caller_who_knows_what_is_confirmed_need_not_ask():
    with cluster(closed=False) as source, opened(source, last_confirmed=99) as ledger:
        assert list(ledger.entries(90, 99)) == texts(10, 90)
        assert source.lacs_asked == 0


def test_a_ledger_that_was_closed_meanwhile():
    with cluster(closed=False) as source, opened(source) as ledger:
        assert not ledger.ledger.closed
        source.made = metadata(100)
        assert ledger.last_confirmed() == 99
        assert ledger.ledger.closed


def test_a_ledger_whose_bookies_changed_meanwhile():
    """An entry that its bookies have no more is read where the metadata say it is now."""
    with cluster(quorums=(1, 1), segments={0: "a"}) as source, opened(source) as ledger:
        reading = ledger.entries()
        assert next(reading) == (0, payload(0))
        source.bookies["a"].missing = set(range(60, 100))
        source.made = metadata(100, quorums=(1, 1), segments={0: "d"})
        assert list(reading) == texts(99, 1)


def test_there_is_none():
    with cluster() as source:
        with pytest.raises(LedgerNotFound):
            open_ledger(6, source)
        with opened(source) as ledger:
            with pytest.raises(EntryNotFound):
                list(ledger.read(0, 100))
            with pytest.raises(Invalid):
                list(ledger.read(-1, 5))
            for bookie in source.bookies.values():
                bookie.missing = {50}
            with pytest.raises(MissingEntry):
                list(ledger.read())


def test_damage_is_told_and_can_be_passed():
    with cluster() as source, opened(source) as ledger:
        for bookie in source.bookies.values():
            bookie.damaged = {50}
        found = []
        with pytest.raises(DamagedEntry, match="5:50") as error:
            found.extend(ledger.entries())
        assert error.value.entry_id == 50
        assert found == texts(50)
        assert list(ledger.entries(51)) == texts(49, 51)


def test_bookies_that_cannot_be_reached():
    with cluster() as source, opened(source) as ledger:
        with listening(bytes) as gone:
            pass
        source.addresses["a"] = gone
        source.silent = {"b"}
        assert list(ledger.entries()) == texts(100)
        source.addresses["c"] = gone
    with cluster() as source, opened(source) as ledger:
        source.addresses = dict.fromkeys("abc", gone)
        with pytest.raises(UnreachableEntry, match="Connection refused"):
            list(ledger.read())


def test_too_few_bookies_to_know_what_is_confirmed():
    with cluster(closed=False) as source, opened(source) as ledger:
        source.silent = {"a", "b"}
        with pytest.raises(StorageFailed, match="a does not answer; b does not answer"):
            ledger.last_confirmed()
        source.silent = {"a"}
        assert ledger.last_confirmed() == 98


def test_bookies_without_batches():
    with cluster() as source, opened(source) as ledger:
        source.leaving = {"a", "b", "c"}
        assert list(ledger.entries()) == texts(100)
        for bookie in source.bookies.values():
            bookie.asked.clear()
        assert list(ledger.entries()) == texts(100)
        asked = [each for bookie in source.bookies.values() for each in bookie.asked]
        assert not any(isinstance(each, BatchRead) for each in asked)


def test_who_stops_before_the_end_leaves_nothing_behind():
    """What was asked for and not taken is no answer to the next range."""
    with cluster(quorums=(1, 1), segments={0: "a"}) as source, opened(source) as ledger:
        for _ in range(3):
            reading = ledger.read()
            assert next(reading).first == 0
            reading.close()
        assert list(ledger.entries(30, 60)) == texts(31, 30)


MODULES = ("read_handle", "zookeeper", "sources")


def test_neither_trio_nor_anything_compiled_is_needed():
    """Spark's workers import it in processes of their own."""
    program = (
        "import sys; "
        + "; ".join(f"import magnetar.bookie.reading.{name}" for name in MODULES)
        + "; print(sorted({'trio', 'magnetar.bookie.format.compiled'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, env={"MAGNETAR_PURE": "1"},
    )  # fmt: skip
    assert done.stdout == "[]\n"
