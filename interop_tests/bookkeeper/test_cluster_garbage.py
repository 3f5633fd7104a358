"""Garbage collection of a bookie of ours in a cluster: deleted ledgers' space comes back, and no
trouble of ZooKeeper's makes it take a ledger for deleted.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop_tests import disks
from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.cut import Cutter
from interop_tests.bookkeeper.members import Cluster, ask, texts
from interop_tests.driver import SceneError
from interop_tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]
EAGER = {
    "MAGNETAR_STORAGE_GC_WAIT_SECONDS": "0.2",
    "MAGNETAR_STORAGE_FLUSH_INTERVAL_SECONDS": "0.2",
    "MAGNETAR_STORAGE_ENTRY_LOG_SIZE_LIMIT_MB": "1",
    "MAGNETAR_STORAGE_MINOR_COMPACTION_THRESHOLD": "0.5",
    "MAGNETAR_STORAGE_MINOR_COMPACTION_INTERVAL_SECONDS": "0.2",
}
KIB = {"count": 1_000, "size": 1024}
SYNCS_MAX = 16
WRITTEN_BYTES = 1_200_000
"""Of one ledger, with its overhead."""
SETTLED_BYTES = 1_400_000
"""Of entry logs, when only what lives and one log that is not full are left."""


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
    until(lambda: logs(tmp_path) > 8_000_000)
    for ledger in ledgers[:4] + ledgers[5:]:
        cluster.play("ledgers.delete", ledger=ledger)
    written(cluster)  # so that the log with the last of them is closed
    until(lambda: logs(tmp_path) < 5_000_000)
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
    until(lambda: logs(tmp_path) > 3_000_000)
    cutter.call_in_list(lists, cluster.zookeeper.freeze)
    until(lambda: "this round of garbage collection ends early" in bookie.log())
    cluster.zookeeper.thaw()
    cluster.wait_for(f"/ledgers/available/{bookie.address}")
    for ledger in ledgers:
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(1_000)


def test_connections_that_break_in_lists_delete_nothing(cluster, bookie, cutter, tmp_path) -> None:
    ledgers = [written(cluster) for _ in range(3)]
    gone = ledgers.pop()
    for lists in (1, 2, 3, 4, 5):
        cutter.call_in_list(lists, cutter.break_all)
        until(lambda: not cutter.is_waiting_for_lists)
    cluster.play("ledgers.delete", ledger=gone)
    until(lambda: logs(tmp_path) < 4_000_000)
    for ledger in ledgers:
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(1_000)


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.heavy)])
def test_killed_behind_each_sync_while_ledgers_are_deleted(cluster, tmp_path, step) -> None:
    """Of flushes, deletions and compactions, one after the other: the number of the sync is counted
    up until all of them end before it. What lives is readable, and what is deleted goes in the end.
    """
    counter, folder = tmp_path / "syncs", tmp_path / "bookie"
    folder.mkdir()
    bookie = Bookie(folder, "--metadata-uri", cluster.uri, "--zk-timeout", "2")
    preload = {"LD_PRELOAD": str(disks.library(tmp_path)), "KILLING_DISK": str(counter)}
    kept: list[str] = []
    killed, settled = 0, SETTLED_BYTES
    for number in range(1, SYNCS_MAX, step):
        bookie.environment = {**EAGER, **preload}
        with bookie:
            gone = [written(cluster) for _ in range(2)]
            kept.append(cluster.play("ledgers.write", count=10))
            cluster.play("ledgers.close", ledger=kept[-1])
            counter.write_text(str(number))
            try:
                gone.append(written(cluster))
            except SceneError:  # it is killed while it is written to: that ledger stays
                settled += WRITTEN_BYTES
            for ledger in gone:
                cluster.play("ledgers.delete", ledger=ledger)
            until(lambda most=settled: not bookie.is_running() or logs(tmp_path) < most)
            ended_early = not bookie.is_running()
        counter.unlink(missing_ok=True)
        bookie.environment = EAGER
        with bookie:
            for ledger in kept:
                assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(10)
            until(lambda most=settled: logs(tmp_path) < most)
            for ledger in kept:
                assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(10)
        killed += ended_early
        if not ended_early:
            break
    assert killed >= 6 // step, "points of a flush and a round"


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 256 MB, of which more than half is used."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root's privilege")
    try:
        (folder / "ballast").write_bytes(bytes(150 << 20))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def suspended(bookie: Bookie) -> tuple[str, str]:
    found = ask(bookie.listeners["http"], "/api/v1/bookie/gc/suspend_compaction")
    return found["isMajorGcSuspended"], found["isMinorGcSuspended"]


def majors(bookie: Bookie) -> int:
    (details,) = ask(bookie.listeners["http"], "/api/v1/bookie/gc_details")
    return int(details["majorCompactionCounter"])


MAJOR = {
    **EAGER,
    "MAGNETAR_STORAGE_MINOR_COMPACTION_INTERVAL_SECONDS": "0",
    "MAGNETAR_STORAGE_MAJOR_COMPACTION_INTERVAL_SECONDS": "0.2",
    "MAGNETAR_STORAGE_DISK_CHECK_INTERVAL_SECONDS": "0.1",
    "MAGNETAR_STORAGE_DISK_USAGE_WARN_THRESHOLD": "0.5",
    "MAGNETAR_STORAGE_DISK_USAGE_THRESHOLD": "0.8",
    "MAGNETAR_STORAGE_DISK_USAGE_LOW_WATER_MARK": "0.7",
}


def test_a_disk_that_fills_suspends_compaction(cluster, small_disk) -> None:
    uri, ballast = cluster.uri, small_disk / "ballast"
    bookie = Bookie(small_disk, "--metadata-uri", uri, "--http-port", "0")
    bookie.environment = MAJOR
    with bookie:
        until(lambda: "almost full, there is no major compaction" in bookie.log())
        assert suspended(bookie) == ("true", "false")
        gc = "/api/v1/bookie/gc"
        ask(bookie.listeners["http"], gc, "PUT", {"forceMinor": True, "forceMajor": False})
        details = "/api/v1/bookie/gc_details"
        until(lambda: ask(bookie.listeners["http"], details)[0]["minorCompactionCounter"] >= 1)
        assert majors(bookie) == 0, "it was due, with that round at the latest"
        ask(bookie.listeners["http"], gc, "PUT", {"forceMajor": True})
        until(lambda: majors(bookie) == 1)
        ballast.unlink()
        until(lambda: majors(bookie) > 2)
        assert suspended(bookie) == ("false", "false")
        ballast.write_bytes(bytes(220 << 20))
        until(lambda: suspended(bookie) == ("true", "true"))
        assert "nothing is written any more" in bookie.log()
        ballast.unlink()


def test_a_disk_that_fills_is_compacted_if_it_is_to_be_so(cluster, small_disk) -> None:
    """Apache's `isForceGCAllowWhenNoSpace`."""
    bookie = Bookie(small_disk, "--metadata-uri", cluster.uri, "--http-port", "0")
    never = {"MAGNETAR_STORAGE_MAJOR_COMPACTION_INTERVAL_SECONDS": "0"}
    forced = {"MAGNETAR_STORAGE_IS_FORCE_GC_ALLOW_WHEN_NO_SPACE": "true"}
    bookie.environment = {**MAJOR, **never, **forced}
    with bookie:
        until(lambda: majors(bookie) > 1)
        assert suspended(bookie) == ("false", "false")
