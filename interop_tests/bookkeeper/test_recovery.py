"""Our AutoRecovery: what a lost bookie had is on others afterwards, for Apache's client."""

import signal
from contextlib import ExitStack

import pytest
import trio

from interop_tests.bookkeeper.apache import ApacheBookie, running_bookie
from interop_tests.bookkeeper.members import Cluster, ask, texts
from interop_tests.bookkeeper.recovery import (
    Recovery,
    asked,
    command,
    frozen,
    is_repaired,
    members,
    wait_for,
)
from interop_tests.driver import SceneError

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def cluster(own_zookeeper, java) -> Cluster:
    return Cluster(own_zookeeper, java, "")


@pytest.fixture
def bookies(cluster, tmp_path):
    """Four of ours, by their ids."""
    with ExitStack() as stack:
        yield {
            made.address: made
            for made in [
                stack.enter_context(cluster.bookie(tmp_path / name, "--http-port", "0"))
                for name in "abcd"
            ]
        }


SIZES = [{"ensemble": 3, "quorum": 3, "ack": 2}, {"ensemble": 3, "quorum": 2, "ack": 2}]


@pytest.mark.parametrize("sizes", SIZES, ids=["E3W3A2", "E3W2A2"])
def test_a_closed_ledger_of_a_lost_bookie(cluster, bookies, tmp_path, sizes) -> None:
    ledger = cluster.play("ledgers.write", count=500, **sizes)
    cluster.play("ledgers.close", ledger=ledger)
    with Recovery(cluster.uri, tmp_path / "recovery", "--http-port", "0") as recovery:
        ((lost, *kept),) = members(cluster.uri, int(ledger))
        bookies.pop(lost).kill()
        wait_for(lambda: is_repaired(cluster.uri, int(ledger), lost), recovery.log)
        found = ask(recovery.listeners["http"], "/metrics")
        copied = 500 * sizes["quorum"] // 3
        assert f"\nreplication_worker_NUM_ENTRIES_WRITTEN {copied}" in found
        assert "\nmagnetar_recovery_is_auditor 1\n" in found
        assert recovery.stop() == 0
    ((new, *_),) = members(cluster.uri, int(ledger))
    for bookie in kept[: sizes["quorum"] - 1]:
        bookies.pop(bookie).kill()
    found = cluster.play("ledgers.read", ledger=ledger)
    assert found["entries"] == texts(500)
    assert new in bookies


def test_an_open_ledger_of_a_lost_bookie_is_closed_and_repaired(cluster, bookies, tmp_path) -> None:
    ledger = cluster.play("ledgers.write", count=100, ensemble=3, quorum=3, ack=2)
    with Recovery(cluster.uri, tmp_path / "recovery") as recovery:
        ((lost, *kept),) = members(cluster.uri, int(ledger))
        bookies.pop(lost).kill()
        wait_for(lambda: is_repaired(cluster.uri, int(ledger), lost), recovery.log)
    assert command(cluster.uri, "ledger", "metadata", ledger)["state"] == "CLOSED"
    with pytest.raises(SceneError, match=r"Fenced|Closed|Metadata"):
        cluster.play("ledgers.append", ledger=ledger, first=100, count=1)
    for bookie in kept:
        bookies.pop(bookie).kill()
    assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(100)


@pytest.mark.heavy
def test_a_bookie_of_apaches_is_lost(cluster, tmp_path) -> None:
    """Three of its and two of ours; what is repaired is read from what is left of each kind."""
    with ExitStack() as stack:
        theirs = {
            made.bookie_id: made
            for made in [
                stack.enter_context(running_bookie(cluster.uri, tmp_path / f"apache-{i}"))
                for i in range(2)
            ]
        }
        ours = {
            made.address: made
            for made in [stack.enter_context(cluster.bookie(tmp_path / name)) for name in "ab"]
        }
        ledgers = []
        for _ in range(3):
            ledger = cluster.play("ledgers.write", count=200, ensemble=3, quorum=2, ack=2)
            cluster.play("ledgers.close", ledger=ledger)
            ledgers.append(ledger)
        lost = next(one for one in members(cluster.uri, int(ledgers[0]))[0] if one in theirs)
        with Recovery(cluster.uri, tmp_path / "recovery") as recovery:
            theirs.pop(lost).stop(signal.SIGKILL)
            for ledger in ledgers:
                wait_for(lambda one=int(ledger): is_repaired(cluster.uri, one, lost), recovery.log)
        for ledger in ledgers:
            assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(200)
        ours.popitem()[1].kill()
        for ledger in ledgers:
            assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(200)


def test_ours_and_apaches_in_one_cluster(cluster, bookies, tmp_path) -> None:
    """One of them is the auditor, whoever it is, and both take locks."""
    apache = ApacheBookie(cluster.uri, tmp_path / "apache")
    votes = "/ledgers/underreplication/auditorelection"

    def voters() -> int:
        return len(cluster.ask(lambda store: store.children(votes)))

    slow = ("--replication-rate-by-bytes", "300000")
    with Recovery(cluster.uri, tmp_path / "one", "--bookie-id", "127.0.0.1:1", *slow) as one:
        wait_for(lambda: voters() == 1, one.log)
        apache.start_recovery()
        try:
            wait_for(lambda: voters() == 2, apache.log)
            assert command(cluster.uri, "bookie", "who-is-auditor")["auditor"] == "127.0.0.1:1"
            assert "127.0.0.1:1" in apache.shell("whoisauditor")
            ledgers = [a_closed_ledger(cluster, 300, size=1000) for _ in range(12)]
            lost = members(cluster.uri, int(ledgers[0]))[0][0]
            bookies.pop(lost).kill()
            wait_for(lambda: all_repaired(cluster.uri, lost), one.log)
            assert " instead of " in one.log()
            assert "Ledger replicated successfully" in apache.log()
            assert one.stop() == 0
            is_auditor = f"127.0.0.1:{apache.port}"
            wait_for(
                lambda: command(cluster.uri, "bookie", "who-is-auditor")["auditor"] == is_auditor,
                apache.log,
            )
            with Recovery(cluster.uri, tmp_path / "two", "--bookie-id", "127.0.0.1:2") as two:
                wait_for(lambda: voters() == 2, two.log)
                assert command(cluster.uri, "bookie", "who-is-auditor")["auditor"] == is_auditor, (
                    "ours waits behind it"
                )
                apache.stop(signal.SIGKILL)
                wait_for(
                    lambda: (
                        command(cluster.uri, "bookie", "who-is-auditor")["auditor"] == "127.0.0.1:2"
                    ),
                    two.log,
                )
        finally:
            apache.stop(signal.SIGKILL)
    for ledger in ledgers:
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(300)


def a_closed_ledger(cluster, count, **sizes) -> str:
    ledger = cluster.play("ledgers.write", count=count, **{**SIZES[0], **sizes})
    cluster.play("ledgers.close", ledger=ledger)
    return ledger


def has_entries(bookie) -> bool:
    found = ask(bookie.listeners["http"], "/metrics")
    assert "\nbookie_write_cache_count " in found
    return "\nbookie_write_cache_count 0\n" not in found


def all_repaired(uri: str, lost: str) -> bool:
    found = command(uri, "ledger", "list", "--long")
    has = (lost in each["bookies"] for one in found for each in one["segments"])
    return not any(has) and command(uri, "ledger", "under-replicated") == []


def test_another_worker_finishes_what_a_killed_one_has_begun(cluster, bookies, tmp_path) -> None:
    ledger = a_closed_ledger(cluster, 3000, size=1000)
    ((lost, *kept),) = members(cluster.uri, int(ledger))
    (spare,) = (made for name, made in bookies.items() if name not in (lost, *kept))
    slow = ("--replication-rate-by-bytes", "200000")
    with Recovery(cluster.uri, tmp_path / "slow", *slow) as killed:
        bookies.pop(lost).kill()
        wait_for(lambda: has_entries(spare), killed.log)  # some of 3000
        killed.kill()
    assert members(cluster.uri, int(ledger)) == [[lost, *kept]], "nothing is promised yet"
    assert command(cluster.uri, "ledger", "under-replicated")[0]["missing"] == [lost]
    with Recovery(cluster.uri, tmp_path / "other") as other:
        wait_for(lambda: is_repaired(cluster.uri, int(ledger), lost), other.log)
    for bookie in kept:
        bookies.pop(bookie).kill()
    assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(3000)


def test_a_bookie_repairs_too_and_goes_on_when_its_recovery_is_cut_off(cluster, tmp_path) -> None:
    """`--with-recovery`: ZooKeeper is away for a while, and everything after it is repaired."""
    with ExitStack() as stack:
        bookies = {
            made.address: made
            for made in [
                stack.enter_context(
                    cluster.bookie(tmp_path / name, "--with-recovery", "--http-port", "0")
                )
                for name in "abcd"
            ]
        }
        ledger = a_closed_ledger(cluster, 100)
        ((lost, *_),) = members(cluster.uri, int(ledger))
        cluster.zookeeper.kill()
        cluster.zookeeper.start()
        bookies.pop(lost).kill()
        any_of_them = next(iter(bookies.values()))
        wait_for(lambda: is_repaired(cluster.uri, int(ledger), lost), any_of_them.log)
        figures = [ask(one.listeners["http"], "/metrics") for one in bookies.values()]
        assert sum("\nmagnetar_recovery_is_auditor 1\n" in each for each in figures) == 1
        assert any_of_them.stop() == 0


@pytest.mark.heavy
def test_apaches_shell_sees_what_waits(cluster, bookies, tmp_path) -> None:
    """All bookies but three are lost: nobody can take the place."""
    ledger = a_closed_ledger(cluster, 10)
    ((lost, *kept),) = members(cluster.uri, int(ledger))
    (spare,) = set(bookies) - {lost, *kept}
    bookies.pop(spare).stop()
    shell = ApacheBookie(cluster.uri, tmp_path / "apache")
    with Recovery(cluster.uri, tmp_path / "recovery") as recovery:
        bookies.pop(lost).kill()
        wait_for(lambda: command(cluster.uri, "ledger", "under-replicated"), recovery.log)
        said = shell.shell("listunderreplicated", "-printmissingreplica")
        assert ledger in said
        assert lost in said
    assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(10)


def test_one_that_was_frozen_midway_does_no_harm_later(cluster, bookies, tmp_path) -> None:
    """Its session has ended meanwhile: another one is the auditor, and has repaired the ledger."""
    ledger = a_closed_ledger(cluster, 3000, size=1000)
    ((lost, *kept),) = members(cluster.uri, int(ledger))
    (spare,) = (made for name, made in bookies.items() if name not in (lost, *kept))
    slow = ("--replication-rate-by-bytes", "200000", "--bookie-id", "127.0.0.1:1")
    with Recovery(cluster.uri, tmp_path / "slow", *slow) as slow_one:
        bookies.pop(lost).kill()
        wait_for(lambda: has_entries(spare), slow_one.log)
        with (
            frozen(slow_one),
            Recovery(cluster.uri, tmp_path / "other", "--bookie-id", "127.0.0.1:2") as other,
        ):
            wait_for(lambda: is_repaired(cluster.uri, int(ledger), lost), other.log)
            repaired = members(cluster.uri, int(ledger))
            slow_one.send_signal(signal.SIGCONT)
            wait_for(lambda: "has ended" in slow_one.log(), slow_one.log)
            votes = "/ledgers/underreplication/auditorelection"
            wait_for(lambda: len(cluster.ask(lambda s: s.children(votes))) == 2, slow_one.log)
            assert command(cluster.uri, "bookie", "who-is-auditor")["auditor"] == "127.0.0.1:2"
        assert members(cluster.uri, int(ledger)) == repaired
        assert slow_one.stop() == 0
    for bookie in kept:
        bookies.pop(bookie).kill()
    assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(3000)


@pytest.mark.parametrize("kind", ["ours", "apache's"])
def test_an_entry_that_rots_in_the_middle_is_stored_again(cluster, tmp_path, kind) -> None:
    """The bookie that has it stays: it gets the one entry from the others."""
    with ExitStack() as stack:
        for name in "ab":
            stack.enter_context(cluster.bookie(tmp_path / name))
        if kind == "ours":
            rotten = stack.enter_context(cluster.bookie(tmp_path / "c"))
            bookie_id, logs = rotten.address, "data/bookie/ledgers/current"
        else:
            rotten = stack.enter_context(running_bookie(cluster.uri, tmp_path / "c"))
            bookie_id, logs = rotten.bookie_id, "**/current"
        ledger = cluster.play("ledgers.write", count=50, ensemble=3, quorum=3, ack=3)
        cluster.play("ledgers.close", ledger=ledger)
        (before,) = members(cluster.uri, int(ledger))
        rotten.stop()
        spoil(tmp_path / "c", f"{logs}/*.log", b"entry 25")
        rotten.start()
        assert not is_intact(cluster, int(ledger), 25, bookie_id)
        checks = ("--check-all-ledgers-interval", "1", "--ledger-verification-percentage", "50")
        with Recovery(cluster.uri, tmp_path / "recovery", *checks) as recovery:
            wait_for(lambda: is_intact(cluster, int(ledger), 25, bookie_id), recovery.log)
            wait_for(lambda: is_repaired(cluster.uri, int(ledger), "nobody"), recovery.log)
        assert members(cluster.uri, int(ledger)) == [before]


def spoil(folder, pattern: str, payload: bytes) -> None:
    """Flip a bit of an entry in an entry log."""
    found = [each for each in folder.glob(pattern) if payload in each.read_bytes()]
    (log,) = found
    data = bytearray(log.read_bytes())
    data[data.index(payload)] ^= 1
    log.write_bytes(data)


def is_intact(cluster, ledger_id: int, entry_id: int, bookie_id: str) -> bool:
    """Whether a bookie gives an entry as it was written."""
    answer = trio.run(asked, bookie_id, ledger_id, entry_id)
    return getattr(answer, "entry", b"").endswith(b"entry %d" % entry_id)
