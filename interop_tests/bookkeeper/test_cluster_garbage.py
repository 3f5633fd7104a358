"""Garbage collection of a bookie of ours in a cluster: deleted ledgers' space comes back, and no
trouble of ZooKeeper's makes it take a ledger for deleted.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.cut import Cutter
from interop_tests.bookkeeper.members import Cluster, texts, wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]
EAGER = {
    "MAGNETAR_STORAGE_GC_WAIT_SECONDS": "0.2",
    "MAGNETAR_STORAGE_FLUSH_INTERVAL_SECONDS": "0.2",
    "MAGNETAR_STORAGE_ENTRY_LOG_SIZE_LIMIT_MB": "1",
    "MAGNETAR_STORAGE_MINOR_COMPACTION_THRESHOLD": "0.5",
    "MAGNETAR_STORAGE_MINOR_COMPACTION_INTERVAL_SECONDS": "0.2",
}
KIB = {"count": 1_000, "size": 1024}


@pytest.fixture
def cluster(own_zookeeper, java) -> Cluster:
    return Cluster(own_zookeeper, java, "")


@pytest.fixture
def cutter(own_zookeeper) -> Iterator[Cutter]:
    """Between the bookie and its ZooKeeper."""
    with Cutter(own_zookeeper.port) as between:
        yield between


@pytest.fixture
def bookie(cluster, cutter, tmp_path) -> Iterator[Bookie]:
    uri = f"zk+hierarchical://127.0.0.1:{cutter.port}/ledgers"
    (tmp_path / "bookie").mkdir()
    made = Bookie(tmp_path / "bookie", "--metadata-uri", uri, "--zk-timeout", "2")
    made.environment = EAGER
    with made:
        yield made


def logs(folder: Path) -> int:
    """Bytes of entry logs."""
    found = (folder / "bookie/data/bookie/ledgers/current").glob("*.log")
    return sum(log.stat().st_size for log in found)


def written(cluster: Cluster) -> str:
    ledger = cluster.play("ledgers.write", **KIB)
    cluster.play("ledgers.close", ledger=ledger)
    return ledger


def test_the_space_of_deleted_ledgers_comes_back(cluster, bookie, tmp_path) -> None:
    """Whole entry logs, and those that hold little else."""
    ledgers = [written(cluster) for _ in range(8)]
    kept = cluster.play("ledgers.write", count=10)
    wait_until(lambda: logs(tmp_path) > 8_000_000)
    for ledger in ledgers[:4] + ledgers[5:]:
        cluster.play("ledgers.delete", ledger=ledger)
    written(cluster)  # so that the log with the last of them is closed
    wait_until(lambda: logs(tmp_path) < 5_000_000)
    assert cluster.play("ledgers.read", ledger=ledgers[4])["entries"] == texts(1_000)
    cluster.play("ledgers.append", ledger=kept, first=10, count=10)
    cluster.play("ledgers.close", ledger=kept)
    assert cluster.play("ledgers.read", ledger=kept)["entries"] == texts(20)
    bookie.kill()
    bookie.start()
    assert cluster.play("ledgers.read", ledger=ledgers[4])["entries"] == texts(1_000)


@pytest.mark.parametrize("lists", [1, 2, 3, 4])
def test_a_zookeeper_that_is_frozen_in_a_list_deletes_nothing(
    cluster, bookie, cutter, tmp_path, lists
) -> None:
    ledgers = [written(cluster) for _ in range(3)]
    wait_until(lambda: logs(tmp_path) > 3_000_000)
    cutter.call_in_list(lists, cluster.zookeeper.freeze)
    wait_until(lambda: "this round of garbage collection ends early" in bookie.log())
    cluster.zookeeper.thaw()
    cluster.wait_for(f"/ledgers/available/{bookie.address}")
    for ledger in ledgers:
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(1_000)


def test_connections_that_break_in_lists_delete_nothing(cluster, bookie, cutter, tmp_path) -> None:
    ledgers = [written(cluster) for _ in range(3)]
    gone = ledgers.pop()
    for lists in (1, 2, 3, 4, 5):
        cutter.call_in_list(lists, cutter.break_all)
        wait_until(lambda: not cutter.is_waiting_for_lists)
    cluster.play("ledgers.delete", ledger=gone)
    wait_until(lambda: logs(tmp_path) < 4_000_000)
    for ledger in ledgers:
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(1_000)
