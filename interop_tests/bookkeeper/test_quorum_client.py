"""Our client of a cluster and Apache's, on our bookies and a real ZooKeeper."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
import trio

from interop_tests.bookkeeper.cluster import Bookie, Client, ZooKeeper, driver
from interop_tests.bookkeeper.quorum import opened, read_all
from interop_tests.driver import SceneError
from magnetar.core.kernel.errors import Fenced
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

SIZES = pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)], ids=str)
DIGESTS = pytest.mark.parametrize("digest", ["CRC32", "CRC32C", "MAC", "DUMMY"])
STALL_SECONDS = 3.0
"""For how long appends may stand still when a bookie is lost: less than the five seconds after
which it is given up (measured: below 0.1 on a quiet machine, 1.2 on a busy one)."""


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("bookkeeper")
    with ZooKeeper(folder) as zookeeper, driver(folder) as java:
        made = Client(zookeeper, java)
        assert made.play("cluster.init")
        yield made


@pytest.fixture(scope="module")
def bookies(client, tmp_path_factory) -> Iterator[list[Bookie]]:
    with ExitStack() as running:
        folders = [tmp_path_factory.mktemp("bookie") for _ in range(4)]
        made = [running.enter_context(Bookie(folder)) for folder in folders]
        for bookie in made:
            client.register(bookie)
        yield made


@pytest.fixture
def whole(bookies) -> Iterator[list[Bookie]]:
    """The bookies, which all run again after the test."""
    yield bookies
    for bookie in bookies:
        bookie._process.send_signal(signal.SIGCONT)
        if bookie._process.poll() is not None:
            bookie.start()


def texts(count) -> list[str]:
    return [f"entry {i}" for i in range(count)]


async def stock(client, family, **options):
    """What Apache's client does."""
    return await trio.to_thread.run_sync(partial(client.play, family, **options))


async def written(store, count):
    """A ledger of ours, still open."""
    writer = await store.create({"application": b"test"})
    for first in range(0, count, 50):
        numbers = range(first, min(first + 50, count))
        await append(writer, *[b"entry %d" % i for i in numbers])
    return writer


@SIZES
@DIGESTS
@pytest.mark.parametrize("version", [2, 3])
async def test_the_stock_client_reads_ours(client, bookies, sizes, digest, version) -> None:
    async with opened(client.zookeeper.uri, *sizes, digest=digest) as store:
        writer = await written(store, 1000)
        await writer.close()
        options = {"ledger": str(writer.ledger_id), "digest": digest, "version": version}
        found = await stock(client, "ledgers.read", **options)
        assert (found["entries"], found["last"]) == (texts(1000), 999)
        assert found["length"] == sum(map(len, texts(1000)))


@SIZES
@DIGESTS
async def test_we_read_the_stock_clients(client, bookies, sizes, digest) -> None:
    ensemble, quorum, ack = sizes
    options = {"ensemble": ensemble, "quorum": quorum, "ack": ack, "digest": digest, "version": 2}
    ledger = await stock(client, "ledgers.write", count=500, **options)
    async with opened(client.zookeeper.uri, *sizes) as store:
        reader = await store.open(int(ledger), recover=False)
        assert reader.last_confirmed <= 499
        assert await stock(client, "ledgers.close", ledger=ledger) == 499
        reader = await store.open(int(ledger), recover=False)
        assert [each.decode() for each in await read_all(reader)] == texts(500)


@SIZES
@DIGESTS
async def test_the_stock_client_recovers_ours(client, bookies, sizes, digest) -> None:
    async with opened(client.zookeeper.uri, *sizes, digest=digest) as store:
        writer = await written(store, 300)
        options = {"ledger": str(writer.ledger_id), "digest": digest, "recover": True}
        found = await stock(client, "ledgers.read", **options)
        assert found["entries"] == texts(300)
        outcome = Outcome()
        writer.append([b"zombie"], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, Fenced)
        assert (await store.info(writer.ledger_id)).last_entry_id == 299


@SIZES
@DIGESTS
async def test_we_recover_the_stock_clients(client, bookies, sizes, digest) -> None:
    ensemble, quorum, ack = sizes
    options = {"ensemble": ensemble, "quorum": quorum, "ack": ack, "digest": digest}
    ledger = await stock(client, "ledgers.write", count=200, **options)
    async with opened(client.zookeeper.uri, *sizes) as store:
        reader = await store.open(int(ledger), recover=True)
        assert [each.decode() for each in await read_all(reader)] == texts(200)
    with pytest.raises(SceneError, match="LedgerFenced"):
        await stock(client, "ledgers.append", ledger=ledger, first=200, count=1)
    found = await stock(client, "ledgers.read", ledger=ledger, digest=digest)
    assert found["last"] == 199


class Load:
    """Appends, a bounded number of them in flight, and when each was acknowledged."""

    def __init__(self, writer) -> None:
        self.writer = writer
        self.appended = 0
        self.times = []
        self._room = trio.Semaphore(50)

    def _done(self, error) -> None:
        assert error is None, error
        self.times.append(time.monotonic())
        self._room.release()

    async def run(self, count) -> None:
        for _ in range(count):
            await self._room.acquire()
            self.writer.append([b"entry %d" % self.appended], self._done)
            self.appended += 1

    async def finish(self) -> None:
        for _ in range(50):
            await self._room.acquire()

    @property
    def stall(self) -> float:
        return max(b - a for a, b in zip(self.times, self.times[1:], strict=False))


@SIZES
@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGSTOP], ids=lambda each: each.name)
async def test_a_bookie_is_lost_under_load(client, whole, sizes, signal_) -> None:
    """Nothing that was acknowledged is lost, and appends go on."""
    async with opened(client.zookeeper.uri, *sizes) as store:
        load = Load(await store.create({}))
        await load.run(2000)
        ((_, ensemble),) = [load.writer.view.last_segment]
        lost = next(each for each in whole if each.address == ensemble[1])
        lost._process.send_signal(signal_)
        await load.run(2000)
        await load.finish()
        print(f"{sizes} {signal_.name}: {load.stall:.3f} s without an acknowledgement")
        if signal_ is signal.SIGKILL or sizes[1] > sizes[2]:
            assert load.stall < STALL_SECONDS
        else:  # every entry needs it, until it has not answered for five seconds
            assert load.stall < 7
        info = await load.writer.close()
        assert info.last_entry_id == 3999
        options = {"ledger": str(info.ledger_id), "digest": "CRC32C"}
        assert (await stock(client, "ledgers.read", **options))["entries"] == texts(4000)


def killed_writer(uri, sizes) -> tuple[int, int]:
    """The ledger of a process that was killed, and how many entries it knew to be stored."""
    words = [sys.executable, "-m", "interop_tests.bookkeeper.quorum_child", uri]
    with subprocess.Popen([*words, *map(str, sizes)], stdout=subprocess.PIPE, text=True) as child:
        ledger_id = int(child.stdout.readline())
        for _ in range(2000):
            child.stdout.readline()
        child.kill()
        rest, _ = child.communicate()
    whole_lines = rest.rpartition("\n")[0].split()
    return ledger_id, int(whole_lines[-1]) if whole_lines else 2000


@SIZES
async def test_a_writer_that_was_killed_has_lost_nothing(client, bookies, sizes) -> None:
    uri = client.zookeeper.uri
    ledger_id, acknowledged = await trio.to_thread.run_sync(killed_writer, uri, sizes)
    async with opened(uri, *sizes) as store:
        reader = await store.open(ledger_id, recover=True)
        found = await read_all(reader)
        assert len(found) >= acknowledged
        assert [each.decode() for each in found] == texts(len(found))
        options = {"ledger": str(ledger_id), "digest": "CRC32C"}
        assert (await stock(client, "ledgers.read", **options))["entries"] == texts(len(found))
