"""Tools that retire, replace and test bookies, and Apache's shell beside them."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from interop_tests.bookkeeper.apache import ApacheBookie
from interop_tests.bookkeeper.cluster import MAGNETAR
from interop_tests.bookkeeper.members import THREE, Cluster, ask, texts
from interop_tests.bookkeeper.recovery import Recovery, command, members, wait_for
from magnetar.core.ports.metadata_store import ABSENT

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def cluster(own_zookeeper, java) -> Cluster:
    return Cluster(own_zookeeper, java, "")


@pytest.fixture
def bookies(cluster, tmp_path):
    """Four of ours, by their ids."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(cluster.bookie(tmp_path / name, "--http-port", "0"))
            for name in "abcd"
        ]
        yield {each.address: each for each in made}


def test_a_bookie_is_retired(cluster, bookies, tmp_path) -> None:
    uri = cluster.uri
    ledgers = [cluster.play("ledgers.write", count=20, **THREE) for _ in range(3)]
    for ledger in ledgers:
        cluster.play("ledgers.close", ledger=ledger)
    retired = members(uri, int(ledgers[0]))[0][1]
    assert "is running" in command(uri, "bookie", "decommission", retired, succeeds=False)
    having = [one for one in ledgers if retired in members(uri, int(one))[0]]
    bookies.pop(retired).stop()
    with ThreadPoolExecutor() as pool:  # it marks the ledgers, and waits for somebody
        waiting = pool.submit(command, uri, "bookie", "decommission", retired)
        wait_for(lambda: len(command(uri, "ledger", "under-replicated")) == len(having), str)
        with Recovery(uri, tmp_path / "recovery"):
            assert waiting.result() == {"bookie": retired, "ledgers": len(having)}
            wait_for(lambda: command(uri, "ledger", "under-replicated") == [], str)  # marks go last
    for ledger in ledgers:
        assert retired not in members(uri, int(ledger))[0]
        assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(20)
    assert retired not in cluster.ask(lambda store: store.children("/ledgers/cookies"))
    assert "no cookie" in command(uri, "bookie", "decommission", retired, succeeds=False)


def test_a_bookie_is_emptied_by_hand_while_it_runs(cluster, bookies) -> None:
    uri = cluster.uri
    ledger = cluster.play("ledgers.write", count=50, ensemble=3, quorum=2, ack=2)
    cluster.play("ledgers.close", ledger=ledger)
    still_open = cluster.play("ledgers.write", count=5, **THREE)
    ((one, *kept),) = members(uri, int(ledger))
    planned = command(uri, "bookie", "recover", one, "--dry-run", "--ledger", ledger)
    assert list(planned["replacements"]) == [one]
    assert members(uri, int(ledger)) == [[one, *kept]]
    assert "no such bookie" in command(uri, "bookie", "recover", "nobody:1", succeeds=False)
    done = command(uri, "bookie", "recover", one, "--skip-open-ledgers")
    assert done == {"ledger": int(ledger), "fragments": 1}
    assert one not in members(uri, int(ledger))[0]
    bookies.pop(one).kill()
    assert cluster.play("ledgers.read", ledger=ledger)["entries"] == texts(50)
    found = cluster.play("ledgers.read", ledger=still_open, recover=True)
    assert found["entries"] == texts(5)


def test_a_ledger_that_somebody_else_repairs_comes_last(cluster, bookies, tmp_path) -> None:
    uri = cluster.uri
    ledgers = [cluster.play("ledgers.write", count=5, ensemble=3, quorum=2, ack=2) for _ in "abc"]
    for ledger in ledgers:
        cluster.play("ledgers.close", ledger=ledger)
    ensembles = [set(members(uri, int(ledger))[0]) for ledger in ledgers]
    one = min(set.intersection(*ensembles))  # three of them lack at most three of four
    lock = f"/ledgers/underreplication/locks/urL{int(ledgers[0]):010d}"
    with Recovery(uri, tmp_path / "recovery"):  # makes the folders that both kinds know
        wait_for(lambda: command(uri, "bookie", "who-is-auditor")["auditor"], str)
    cluster.ask(lambda store: store.put(lock, b'bookieId: "10.0.0.9:3181"\n', ABSENT))
    said = tmp_path / "said"
    words = [MAGNETAR, "bookie", "recover", one, "--metadata-uri", uri]
    with said.open("w") as file, subprocess.Popen(words, stderr=file) as process:
        try:
            wait_for(lambda: "this waits" in said.read_text(), said.read_text)
            waiting = f"ledger {ledgers[0]} is being repaired by 10.0.0.9:3181"
            assert said.read_text().count(waiting) == 1
            assert one in members(uri, int(ledgers[0]))[0]
            assert all(one not in members(uri, int(each))[0] for each in ledgers[1:])
            cluster.ask(lambda store: store.delete(lock, 0))
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert "3 ledgers were repaired" in said.read_text()
    assert one not in members(uri, int(ledgers[0]))[0]


def test_a_bookie_is_tested_and_told_to_collect(cluster, bookies) -> None:
    uri = cluster.uri
    one = next(iter(bookies))
    assert command(uri, "bookie", "sanity", one) == {"bookie": one, "entries": 10}
    assert command(uri, "ledger", "list") == []
    found = command(uri, "bookie", "gc", one, "--minor")
    assert found["http"] == bookies[one].listeners["http"]
    wait_for(
        lambda: ask(found["http"], "/api/v1/bookie/gc_details")[0]["minorCompactionCounter"] >= 1,
        bookies[one].log,
    )
    bookies[one].kill()
    assert f"the bookie {one} does not " in command(uri, "bookie", "sanity", one, succeeds=False)


@pytest.mark.heavy
def test_switches_that_both_kinds_of_tools_know(cluster, tmp_path) -> None:
    uri = cluster.uri
    shell = ApacheBookie(uri, tmp_path / "apache")
    with Recovery(uri, tmp_path / "recovery", "--bookie-id", "127.0.0.1:4711") as recovery:
        wait_for(lambda: command(uri, "bookie", "who-is-auditor")["auditor"], recovery.log)
        assert "127.0.0.1:4711" in shell.shell("whoisauditor")
        assert command(uri, "bookie", "autorecovery", "--disable")["enabled"] is False
        assert command(uri, "bookie", "autorecovery", "--disable")["enabled"] is False, "again"
        both = ("bookie", "autorecovery", "--enable", "--disable")
        assert "not both" in command(uri, *both, succeeds=False)
        shell.shell("autorecovery", "-enable")
        assert command(uri, "bookie", "autorecovery")["enabled"] is True
        shell.shell("autorecovery", "-disable")
        assert command(uri, "bookie", "autorecovery", "--enable")["enabled"] is True
        command(uri, "bookie", "lost-bookie-recovery-delay", "30")
        assert "30" in shell.shell("lostbookierecoverydelay", "-get")
        shell.shell("lostbookierecoverydelay", "-set", "7")
        assert command(uri, "bookie", "lost-bookie-recovery-delay") == {
            "lost_bookie_recovery_delay": 7
        }
        assert command(uri, "bookie", "trigger-audit") == {"auditor": "127.0.0.1:4711"}
        shell.shell("triggeraudit")
