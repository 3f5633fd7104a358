"""The writer over a link that answers when told to."""

import pytest
import trio
import trio.testing

from magnetar.bookie.client.writer import RUN_BYTES_MAX, Writer
from magnetar.bookie.format import entries, ledger_metadata
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Fenced, Invalid, Overloaded, StorageFailed, StorageFull
from magnetar.core.testing.metadata import overwrite

KEY = b"k" * 20


class Link:
    """Takes runs; the test says when and how each is answered."""

    def __init__(self):
        self.runs = []
        self.acks = []
        self.refusal = None

    def add(self, run, master_key, acked):
        if self.refusal is not None:
            raise self.refusal
        assert master_key == KEY
        self.runs.append(run)
        self.acks.append(acked)

    def ack(self, error=None):
        self.acks.pop(0)(error)

    def release(self, ledger_id):
        pass


class Bench:
    def __init__(self):
        self.link = Link()
        self.later = []
        self.store = DictMetadata()
        self.closed = []
        self.writer = Writer(4, KEY, self.link, self.store, self.later.append, self.closed.append)
        self.results = []

    def append(self, *payloads, name=None):
        return self.writer.append(payloads, lambda error: self.results.append((name, error)))

    def turn(self):
        """One turn of the loop."""
        later, self.later[:] = list(self.later), []
        for call in later:
            call()

    async def make(self):
        fresh = ledger_metadata.fresh(("a",), (1, 1), {}, 0, 0)
        await overwrite(self.store, ledger_metadata.path_of(4), ledger_metadata.encode(fresh))


@pytest.fixture
def bench():
    return Bench()


def test_entries_carry_what_was_confirmed_when_they_were_sealed(bench):
    bench.append(b"aa")
    bench.append(b"b")
    bench.link.ack()
    bench.append(b"c")
    headers = [entries.header_of(run, run.first) for run in bench.link.runs]
    assert [(h.entry_id, h.last_confirmed, h.length) for h in headers] == [
        (0, -1, 2),
        (1, -1, 3),
        (2, 0, 4),
    ]
    assert bench.writer.last_confirmed == 0
    assert bench.writer.length == 4


def test_headers_are_joined_to_their_payloads(bench):
    bench.writer.append([b"one", b"two"], lambda error: None, [b"1", b"2"])
    (run,) = bench.link.runs
    assert entries.payloads(run, 0, 1, 99) == [b"1one", b"2two"]
    assert bench.writer.length == 8


def test_a_large_payload_is_stored_as_it_is():
    bench = Bench()
    payload = bytes(entries.APART_BYTES)
    bench.writer.append([payload], lambda error: None, [b"head"])
    bench.writer.append([payload[1:]], lambda error: None)
    bench.writer.append([payload, b"more"], lambda error: None)
    large, small, many = bench.link.runs
    assert large.apart is payload
    assert entries.payloads(large, 0, 0, 1) == [b"head" + payload]
    assert not small.apart
    assert not many.apart
    assert bench.writer.length == 4 + 3 * len(payload) + 3


def test_a_refused_run_is_told_in_its_turn_and_uses_no_id(bench):
    bench.append(b"a", name=1)
    bench.link.refusal = Overloaded("later")
    assert bench.append(b"b", name=2) == 1
    bench.turn()
    assert bench.results == []  # not before the run in front of it
    bench.link.refusal = None
    assert bench.append(b"c", name=3) == 1
    bench.link.ack()
    assert [name for name, _ in bench.results] == [1, 2, 3]
    assert all(isinstance(error, Overloaded) for _, error in bench.results[1:]), (
        "nothing is stored behind a refused run before its caller knows"
    )
    assert bench.append(b"d", name=4) == 1
    bench.link.ack()
    assert bench.results[3] == (4, None)


@pytest.mark.parametrize("error", [StorageFull("full"), Fenced("fenced")])
def test_any_other_refusal_is_for_good(bench, error):
    bench.link.refusal = error
    bench.append(b"a")
    bench.link.refusal = None
    bench.append(b"b")
    assert bench.results == []
    bench.turn()
    assert bench.results == [(None, error)] * 2
    assert not bench.link.runs


def test_a_lost_run_fails_those_that_come_after(bench):
    bench.append(b"a", name=1)
    bench.append(b"b", name=2)
    bench.link.ack(StorageFailed("disk"))
    bench.append(b"c", name=3)
    bench.link.ack(StorageFailed("disk"))
    bench.turn()
    assert [name for name, error in bench.results if error is not None] == [1, 2, 3]
    assert bench.writer.last_confirmed == -1


def test_long_runs_go_in_pieces_and_are_told_once(bench):
    payloads = [b"x" * 1_500_000] * 6
    assert bench.append(*payloads) == 0
    assert len(bench.link.runs) == 3
    assert all(len(run.blob) <= RUN_BYTES_MAX + 200 for run in bench.link.runs)
    for _ in range(3):
        assert bench.results == []
        bench.link.ack()
    assert bench.results == [(None, None)]
    assert bench.writer.last_confirmed == 5


def test_an_entry_may_be_too_large(bench):
    bench.append(b"x" * 17_000_000)
    bench.append(b"behind it")
    bench.turn()
    assert [type(error) for _, error in bench.results] == [Invalid] * 2
    assert not bench.link.runs
    bench.append(b"next")
    assert len(bench.link.runs) == 1


async def test_close_seals_at_the_confirmed_and_subtracts_the_rest(bench):
    await bench.make()
    bench.append(b"safe", name=1)
    bench.append(b"in flight", name=2)
    bench.link.ack()
    info = await bench.writer.close()
    assert (info.last_entry_id, info.length) == (0, 4)
    assert [name for name, error in bench.results if error is not None] == [2]
    bench.link.ack()  # an answer that comes too late means nothing
    assert bench.writer.last_confirmed == 0
    assert bench.closed == [4]


async def test_close_again_is_the_same_and_after_a_recovery_is_refused(bench):
    await bench.make()
    bench.append(b"a")
    bench.link.ack()
    first = await bench.writer.close()
    assert await bench.writer.close() == first
    other = Bench()
    await other.make()
    other.append(b"a")
    other.link.ack()
    found = await other.store.get(ledger_metadata.path_of(4))
    taken, _ = ledger_metadata.decode(found.value)
    taken.state = ledger_metadata.IN_RECOVERY
    await overwrite(other.store, ledger_metadata.path_of(4), ledger_metadata.encode(taken))
    with pytest.raises(Fenced):
        await other.writer.close()
    await trio.lowlevel.checkpoint()
