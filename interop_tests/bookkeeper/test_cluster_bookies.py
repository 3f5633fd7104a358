"""Bookies of ours as members of a cluster: they register themselves, wait, refuse, and collect.

A client of Apache's, and its shell, find them through a real ZooKeeper, which is frozen and killed.
"""

import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from interop_tests.bookkeeper.apache import ApacheBookie
from interop_tests.bookkeeper.cluster import MAGNETAR, Bookie
from interop_tests.bookkeeper.members import ONE, SESSION, THREE, Cluster, ask, texts
from interop_tests.driver import SceneError
from interop_tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shared(zookeeper, java) -> Cluster:
    return Cluster(zookeeper, java, "")


@pytest.fixture
def cluster(shared) -> Cluster:
    """Without any bookie: those of the test before have lost their sessions too."""
    until(lambda: not shared.registered())
    return shared


@pytest.fixture
def own(own_zookeeper, java) -> Cluster:
    """One whose ZooKeeper the test may stop."""
    return Cluster(own_zookeeper, java, "")


def refusal(uri: str, folder: Path, *more: str) -> str:
    """What a bookie says that does not start."""
    command = [
        MAGNETAR, "bookie", "--data-dir", str(folder / "data"), "--metadata-uri", uri, *SESSION,
        "--log-level", "warning", *more,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_a_stock_client_on_three_bookies_that_registered_themselves(cluster, tmp_path) -> None:
    with ExitStack() as stack:
        bookies = [stack.enter_context(cluster.bookie(tmp_path / name)) for name in ("a", "b", "c")]
        assert cluster.registered() == sorted(bookie.address for bookie in bookies)
        ledger = cluster.play("ledgers.write", count=200, **THREE)
        assert cluster.play("ledgers.close", ledger=ledger) == 199
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(200)
        bookies[1].kill()
        found = cluster.play("ledgers.read", ledger=ledger)
        assert found["entries"] == texts(200)
        bookies[1].start()  # waits for its former session
        assert len(cluster.registered()) == 3
        assert bookies[0].stop() == 0
        assert bookies[0].address not in cluster.registered(), "at once, not after the session"
        ledger = cluster.play("ledgers.write", count=10, ensemble=2)
        cluster.play("ledgers.close", ledger=ledger)


def test_the_variable_of_the_tools_names_the_cluster_too(cluster, tmp_path) -> None:
    bookie = Bookie(tmp_path, *SESSION)
    bookie.environment = {"MAGNETAR_METADATA_URI": cluster.uri}
    with bookie:
        assert bookie.address in cluster.registered()
        assert bookie.stop() == 0


def test_stock_tools_list_the_bookie_and_its_cookie(cluster, tmp_path) -> None:
    shell = ApacheBookie(cluster.uri, tmp_path / "apache")
    with cluster.bookie(tmp_path / "ours", "--bookie-id", "ours") as bookie:
        host, port = bookie.address.split(":")
        said = shell.shell("listbookies", "-rw")
        assert "ours" in said
        assert re.search(rf"{host}\b.*\b{port}", said), said
        assert port in shell.shell("endpointinfo", "-b", "ours")
    with cluster.bookie(tmp_path / "by-address") as bookie:  # as the command wants it
        assert ONE in shell.shell("cookie_get", bookie.address)
        (on_disk,) = (tmp_path / "by-address/data/bookie/ledgers/current").glob("VERSION")
        stored = cluster.ask(lambda store: store.get(f"/ledgers/cookies/{bookie.address}"))
        assert on_disk.read_bytes() == stored.value


def test_an_administrator_asks_the_bookie_over_http(cluster, tmp_path) -> None:
    """As Apache's own bookie is asked; and its registration names the port."""
    shell = ApacheBookie(cluster.uri, tmp_path / "apache")
    bookie = cluster.bookie(tmp_path / "ours", "--http-port", "0")
    bookie.environment = {"MAGNETAR_STORAGE_FLUSH_INTERVAL_SECONDS": "0.1"}
    with bookie:
        where = bookie.listeners["http"]
        assert where.rpartition(":")[2] in shell.shell("endpointinfo", "-b", bookie.address)
        ledger = cluster.play("ledgers.write", count=10)
        cluster.play("ledgers.close", ledger=ledger)
        found = ask(where, "/api/v1/bookie/list_bookies?print_hostnames=true")
        assert found == {bookie.address: "127.0.0.1"}
        metadata = ask(where, f"/api/v1/ledger/metadata?ledger_id={ledger}")[ledger]
        assert (metadata["state"], metadata["lastEntryId"]) == ("CLOSED", 9)
        assert metadata["allEnsembles"] == {"0": [{"id": bookie.address}]}
        ask(where, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": True})
        cluster.wait_for(f"/ledgers/available/readonly/{bookie.address}")
        assert bookie.address in shell.shell("listbookies", "-ro")
        with pytest.raises(SceneError, match="Not enough non-faulty bookies"):
            cluster.play("ledgers.write", count=1)
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(10)
        ask(where, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": False})
        cluster.wait_for(f"/ledgers/available/{bookie.address}")
        assert ledger in ask(where, "/api/v1/ledger/list")
        ask(where, f"/api/v1/ledger/delete?ledger_id={ledger}", "DELETE")
        with pytest.raises(SceneError, match="NoSuchLedger"):
            cluster.play("ledgers.read", ledger=ledger)
        deadline = time.monotonic() + 30
        while "bookie_DELETED_LEDGER_TOTAL 1" not in ask(where, "/metrics"):
            assert time.monotonic() < deadline
            ask(where, "/api/v1/bookie/gc", "PUT")
        # A round counts the ledgers that it deletes before it has ended, its compaction at the end.
        while not ask(where, "/api/v1/bookie/gc_details")[0]["minorCompactionCounter"]:
            assert time.monotonic() < deadline


def test_an_administrator_asks_for_the_cluster_over_http(cluster, tmp_path) -> None:
    """Its bookies, its ledgers, and who repairs them: the shell sees what was changed so."""
    shell = ApacheBookie(cluster.uri, tmp_path / "apache")
    with cluster.bookie(tmp_path / "ours", "--http-port", "0") as bookie:
        where = bookie.listeners["http"]
        ledger = cluster.play("ledgers.write", count=10)
        cluster.play("ledgers.close", ledger=ledger)
        rooms = ask(where, "/api/v1/bookie/list_bookie_info")
        assert set(rooms) == {bookie.address, "ClusterInfo: "}
        room = ask(where, "/api/v1/bookie/info")
        assert f"Total: {room['totalSpace']}(" in rooms[bookie.address]
        read = ask(where, f"/api/v1/ledger/read?ledger_id={ledger}&start_entry_id=3")
        assert read == {str(i): text for i, text in enumerate(texts(10)) if i >= 3}
        (compacting,) = ask(where, "/api/v1/bookie/entry_location_compact")
        assert compacting == str(tmp_path / "ours/data/bookie/ledgers/current/locations")
        wanted = {"entryLocationRocksDBCompact": True}
        ask(where, "/api/v1/bookie/entry_location_compact", "PUT", wanted)
        until(lambda: ask(where, "/api/v1/bookie/gc_details")[0]["entryLocationCompactionCounter"])
        ask(where, "/api/v1/autorecovery/status?enabled=false", "PUT")
        assert ask(where, "/api/v1/autorecovery/status") == {"enabled": False}
        shell.shell("autorecovery", "-enable")
        assert ask(where, "/api/v1/autorecovery/status") == {"enabled": True}
        delay = "/api/v1/autorecovery/lost_bookie_recovery_delay"
        ask(where, delay, "PUT", {"delay_seconds": 77})
        assert "77" in shell.shell("lostbookierecoverydelay", "-get")
        assert ask(where, delay) == "lostBookieRecoveryDelay value: 77"


def test_who_may_not_start_is_told_what_to_do(cluster, zookeeper, tmp_path) -> None:
    nowhere = f"zk+hierarchical://{zookeeper.address}/nowhere/ledgers"
    assert "there is no BookKeeper cluster at /nowhere/ledgers: format one first" in refusal(
        nowhere, tmp_path / "new", "--port", "0"
    )
    flat = cluster.uri.replace("hierarchical", "flat")
    assert "are laid out hierarchical, not flat" in refusal(flat, tmp_path / "new", "--port", "0")
    name = ("--bookie-id", "first", "--port", "0")
    with cluster.bookie(tmp_path / "first", *name):
        said = refusal(cluster.uri, tmp_path / "first", *name)
        assert "in use by another server" in said
        said = refusal(cluster.uri, tmp_path / "empty", *name)
        assert "the cookie that bookie first has in the metadata store" in said
        shutil.copytree(tmp_path / "first/data", tmp_path / "copy/data")
        said = refusal(cluster.uri, tmp_path / "copy", *name)
        assert "another process is registered as bookie first" in said
        assert "stop it, or give this one its own id and directories" in said
        assert "first" in cluster.registered()
    said = refusal(cluster.uri, tmp_path / "copy", "--bookie-id", "second", "--port", "0")
    assert "has the cookie of bookie first" in said
    assert "this one is second" in said


@pytest.mark.parametrize("failure", ["restart", "outage", "silence", "expiry"])
def test_after_its_session_a_bookie_registers_again(own, tmp_path, failure) -> None:
    """It serves meanwhile: whoever knows it reads and writes."""
    with own.bookie(tmp_path / "one") as bookie:
        ledger = own.play("ledgers.write", count=10)
        path = f"/ledgers/available/{bookie.address}"
        if failure == "restart":
            own.zookeeper.kill()
            own.zookeeper.start()
        elif failure == "outage":
            own.zookeeper.kill()
            time.sleep(8)  # longer than anything waits for an answer
            own.zookeeper.start()
        elif failure == "silence":
            own.zookeeper.freeze()
            time.sleep(3)  # longer than the session
            own.zookeeper.thaw()
        else:
            bookie.pause(lambda: own.wait_for(path, is_there=False))
        own.wait_for(path)
        own.play("ledgers.append", ledger=ledger, first=10, count=10)
        own.play("ledgers.close", ledger=ledger)
        assert own.play("ledgers.read", ledger=ledger)["entries"] == texts(20)


def test_who_lost_its_name_to_another_process_ends(own, tmp_path) -> None:
    with own.bookie(tmp_path / "first", "--bookie-id", "name") as first:
        (tmp_path / "second").mkdir()
        first.stop()
        shutil.copytree(tmp_path / "first/data", tmp_path / "second/data")
        first.start()

        def taken() -> None:
            own.wait_for("/ledgers/available/name", is_there=False)
            second.start()

        second = own.bookie(tmp_path / "second", "--bookie-id", "name")
        try:
            first.pause(taken)
            assert first.wait(60) == 2
            assert own.registered() == ["name"]
        finally:
            second.kill()
