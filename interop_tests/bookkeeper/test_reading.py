"""The blocking reader on ledgers of Apache's Java client, on our bookies and on Apache's.

Bookies are killed, frozen, and have damaged disks; ZooKeeper is a real one.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interop_tests.bookkeeper.apache import ApacheBookie, running_bookie
from interop_tests.bookkeeper.cluster import Bookie, Client, ZooKeeper, driver
from interop_tests.driver import SceneError
from interop_tests.waiting import until
from magnetar.bookie.reading.errors import DamagedEntry, UnreachableEntry
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.read_handle import ReadHandle, open_ledger
from magnetar.bookie.reading.zookeeper import ZooKeeperLedgers
from magnetar.core.kernel.errors import LedgerNotFound, NotFound, StorageFailed

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

QUICK = ReadOptions(speculative_seconds=0.2, timeout_seconds=2.0)
ALL = {"ensemble": 3, "quorum": 3, "ack": 2}
STRIPED = {"ensemble": 3, "quorum": 2, "ack": 2}


class Cluster:
    """Three bookies with Apache's client, and what their disks are called."""

    def __init__(self, client: Client, bookies: list[Bookie] | list[ApacheBookie]) -> None:
        self.client = client
        self.bookies = bookies

    def write(self, close: bool = True, **scene) -> int:
        ledger = self._written(scene)
        if close:
            self.client.play("ledgers.close", ledger=ledger)
        return int(ledger)

    def _written(self, scene: dict) -> str:
        """What is written once the bookies are back, which a test before has frozen."""
        deadline = time.monotonic() + 30
        while True:
            try:
                return self.client.play("ledgers.write", **scene)
            except SceneError as error:
                if "NotEnoughBookies" not in str(error) or time.monotonic() > deadline:
                    raise

    @contextmanager
    def opened(self, ledger: int, options: ReadOptions = QUICK) -> Iterator[ReadHandle]:
        with (
            ZooKeeperLedgers(self.client.zookeeper.uri) as source,
            open_ledger(ledger, source, options) as handle,
        ):
            yield handle

    def texts(self, ledger: int, options: ReadOptions = QUICK) -> list[str]:
        with self.opened(ledger, options) as handle:
            return [payload.split(b"\0")[0].decode() for _, payload in handle.entries()]

    def logs(self, place: int) -> list[Path]:
        """The entry logs of a bookie."""
        return sorted(self.bookies[place].directory.rglob("ledgers/current/*.log"))

    @contextmanager
    def stopped(self, place: int, how: signal.Signals) -> Iterator[None]:
        bookie = self.bookies[place]
        if isinstance(bookie, Bookie):
            bookie.kill() if how is signal.SIGKILL else bookie.stop()
        else:
            bookie.stop(how)
        try:
            yield
        finally:
            bookie.start()

    @contextmanager
    def frozen(self, place: int) -> Iterator[None]:
        self.bookies[place].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.bookies[place].send_signal(signal.SIGCONT)


@pytest.fixture(scope="module", params=["ours", "apache"])
def cluster(request, tmp_path_factory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("reading")
    with ZooKeeper(folder) as zookeeper, driver(folder) as java, ExitStack() as running:
        client = Client(zookeeper, java)
        assert client.play("cluster.init")
        bookies = []
        for place in range(3):
            home = tmp_path_factory.mktemp(f"bookie-{place}")
            if request.param == "apache":
                bookies.append(running.enter_context(running_bookie(zookeeper.uri, home)))
            else:
                bookies.append(running.enter_context(Bookie(home)))
                client.register(bookies[-1])
        yield Cluster(client, bookies)


def texts(count: int) -> list[str]:
    return [f"entry {i}" for i in range(count)]


@pytest.mark.parametrize("digest", ["CRC32", "CRC32C", "MAC", "DUMMY"])
@pytest.mark.parametrize("quorums", [ALL, STRIPED], ids=["all", "striped"])
def test_every_digest(cluster, digest, quorums):
    ledger = cluster.write(count=3000, size=500, digest=digest, version=2, **quorums)
    assert cluster.texts(ledger) == texts(3000)


def test_batches_and_single_reads_of_entries_of_any_size(cluster):
    for size in (1, 1024, 100_000, 1_000_000):
        ledger = cluster.write(count=20, size=size, **ALL)
        assert cluster.texts(ledger) == texts(20)
        assert cluster.texts(ledger, ReadOptions(batches=False)) == texts(20)
        assert cluster.texts(ledger, ReadOptions(batch_bytes=1)) == texts(20)


def test_an_open_ledger_and_its_explicit_lac(cluster):
    ledger = cluster.write(close=False, count=100, **ALL)
    with cluster.opened(ledger) as handle:
        confirmed = handle.last_confirmed()
        assert -1 <= confirmed < 99, "the last entry tells of those before it only"
        assert len(list(handle.entries())) == confirmed + 1
    told = cluster.write(close=False, count=100, explicit_lac_ms=50, **ALL)
    with cluster.opened(told) as handle:
        until(lambda: handle.last_confirmed() == 99)
        assert len(list(handle.entries())) == 100
        cluster.client.play("ledgers.close", ledger=str(told))
        assert handle.last_confirmed() == 99
        assert handle.ledger.closed
    cluster.client.play("ledgers.close", ledger=str(ledger))


@pytest.mark.parametrize("quorums", [ALL, STRIPED], ids=["all", "striped"])
def test_one_bookie_is_killed_or_frozen(cluster, quorums):
    ledger = cluster.write(count=3000, size=500, **quorums)
    with cluster.opened(ledger) as handle:
        reading = handle.entries()
        assert next(reading)[0] == 0
        with cluster.stopped(1, signal.SIGKILL):
            assert [entry_id for entry_id, _ in reading] == list(range(1, 3000))
            assert cluster.texts(ledger) == texts(3000)
    with cluster.opened(ledger) as handle, cluster.frozen(2):
        started = time.monotonic()
        assert len(list(handle.entries())) == 3000
        assert time.monotonic() - started < 10


def test_without_a_quorum_nobody_says_that_there_is_nothing(cluster):
    ledger = cluster.write(count=100, ensemble=1)
    unfinished = cluster.write(close=False, count=100, ensemble=1)
    with cluster.frozen(0), cluster.frozen(1), cluster.frozen(2):
        with cluster.opened(ledger) as handle, pytest.raises(UnreachableEntry, match="not answer"):
            list(handle.read())
        with cluster.opened(unfinished) as handle, pytest.raises(StorageFailed):
            handle.last_confirmed()
    assert cluster.texts(ledger) == texts(100)
    cluster.client.play("ledgers.close", ledger=str(unfinished))


def test_damage_on_one_disk_is_passed_and_on_all_is_told(cluster):
    ledger = cluster.write(count=300, size=500, **ALL)
    for place in range(3):
        with cluster.stopped(place, signal.SIGTERM):
            flip(cluster.logs(place), ledger, 200)
        if place < 2:
            assert cluster.texts(ledger) == texts(300)
    with cluster.opened(ledger) as handle:
        with pytest.raises(DamagedEntry) as error:
            list(handle.read())
        assert error.value.entry_id == 200
        assert len(list(handle.entries(0, 199))) == 200
        assert len(list(handle.entries(201))) == 99


def flip(logs: list[Path], ledger: int, entry: int) -> None:
    """Change one bit of an entry's payload on a disk, wherever it is."""
    begin = ledger.to_bytes(8, "big") + entry.to_bytes(8, "big")
    found = 0
    for path in logs:
        data = bytearray(path.read_bytes())
        if (at := data.find(begin)) >= 0:
            data[at + 60] ^= 1
            path.write_bytes(data)
            found += 1
    assert found == 1


def test_there_is_no_such_ledger_and_no_such_cluster(cluster):
    uri = cluster.client.zookeeper.uri
    with ZooKeeperLedgers(uri) as source, pytest.raises(LedgerNotFound):
        open_ledger(4_000_000, source)
    with pytest.raises(NotFound, match="no BookKeeper cluster at /elsewhere"):
        ZooKeeperLedgers(uri.replace("/ledgers", "/elsewhere"))


def test_no_zookeeper():
    with pytest.raises(StorageFailed, match=r"no ZooKeeper answers at 127.0.0.1:1 within"):
        ZooKeeperLedgers("zk:127.0.0.1:1", timeout_seconds=0.5)
