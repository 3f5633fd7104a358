"""The commands of Apache's shell that go over the network, on a cluster of our bookies."""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interop_tests.bookkeeper.apache import ApacheBookie, running_recovery
from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.members import ONE, Cluster, texts
from interop_tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]
THREE = {"ensemble": 3, "quorum": 3, "ack": 2, "password": ""}


@pytest.fixture(scope="module")
def cluster(zookeeper, java) -> Cluster:
    return Cluster(zookeeper, java, "")


@pytest.fixture(scope="module")
def bookies(cluster, tmp_path_factory) -> Iterator[list[Bookie]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(cluster.bookie(tmp_path_factory.mktemp("bookie"))) for _ in range(5)
        ]


@pytest.fixture(scope="module")
def shell(cluster, bookies, tmp_path_factory) -> ApacheBookie:
    """On the machine of the first bookie."""
    port = int(bookies[0].address.rpartition(":")[2])
    return ApacheBookie(cluster.uri, tmp_path_factory.mktemp("shell"), port)


@pytest.fixture(scope="module")
def recovery(cluster, bookies, tmp_path_factory) -> Iterator[ApacheBookie]:
    with running_recovery(cluster.uri, tmp_path_factory.mktemp("recovery")) as made:
        yield made


def written(cluster: Cluster, count: int) -> str:
    ledger = cluster.play("ledgers.write", count=count, **THREE)
    cluster.play("ledgers.close", ledger=ledger)
    return ledger


def ensemble(shell: ApacheBookie, ledger: str) -> set[str]:
    said = shell.shell("ledgermetadata", "-ledgerid", ledger)
    (found,) = re.findall(r"ensembles=\{0=\[([^]]*)]", said)
    return set(found.split(", "))


def test_ledgers_are_written_read_and_listed(cluster, bookies, shell) -> None:
    sizes = ("-ensemble", "3", "-writeQuorum", "3", "-ackQuorum", "2", "-numEntries", "100")
    said = shell.shell("simpletest", *sizes)
    assert re.search(r"100 entries written to ledger \d+ \(lastEntryId 99\)", said), said
    assert "Bookie sanity test succeeded" in shell.shell("bookiesanity", "-entries", "20")
    ledger = written(cluster, 20)
    said = shell.shell("readledger", "-ledgerid", ledger, "-msg")
    assert re.findall(r"^(entry \d+)$", said, re.MULTILINE) == texts(20)
    assert re.search(
        rf"ledgerId={ledger}, metadata=.*state=CLOSED", shell.shell("listledgers", "-meta")
    )
    assert len(ensemble(shell, ledger)) == 3
    opened = cluster.play("ledgers.write", count=10, **THREE)
    said = shell.shell("readledger", "-ledgerid", opened, "-r")
    assert f"entryId=9, entrySize=70, ledgerId={opened}" in said
    assert "state=CLOSED" in shell.shell("ledgermetadata", "-ledgerid", opened), "it was recovered"
    shell.shell("deleteledger", "-ledgerid", ledger, "-force")
    said = shell.shell("ledgermetadata", "-ledgerid", ledger, succeeds=False)
    assert "No such ledger" in said


def test_metadata_are_dumped_and_restored(cluster, bookies, shell, tmp_path) -> None:
    ledger = written(cluster, 20)
    kept = str(tmp_path / "metadata")
    shell.shell("ledgermetadata", "-ledgerid", ledger, "-dumptofile", kept)
    shell.shell("deleteledger", "-ledgerid", ledger, "-force")
    shell.shell("ledgermetadata", "-ledgerid", ledger, "-restorefromfile", kept)
    assert cluster.play("ledgers.read", ledger=ledger, password="")["entries"] == texts(20)


@pytest.mark.heavy
def test_bookies_and_their_cookies(cluster, bookies, shell, tmp_path) -> None:
    said = shell.shell("bookieinfo")
    for bookie in bookies:
        (free, total) = re.search(
            rf"BookieID:{bookie.address}, .*free=(\d+)\(.*total=(\d+)\(", said
        ).groups()
        assert 0 < int(free) < int(total)
    assert ONE in shell.shell("whatisinstanceid")
    address = bookies[4].address
    before = shell.shell("cookie_get", address)
    path = str(tmp_path / "cookie")
    directories = ("--journal-dirs", "journal", "--ledger-dirs", "ledgers")
    shell.shell("cookie_generate", *directories, "--instance-id", ONE, "-o", path, address)
    shell.shell("cookie_delete", address)
    shell.shell("cookie_get", address, succeeds=False)
    shell.shell("cookie_create", "-cf", path, address)
    shell.shell("cookie_update", "-cf", path, address)
    assert cookie(shell.shell("cookie_get", address)) == cookie(before)
    assert bookies[4].stop() == 0
    bookies[4].start()  # with what Apache's tool has made


def cookie(said: str) -> str:
    return said.split("---\n")[1]


@pytest.mark.heavy
def test_the_cluster_and_its_auditor(cluster, bookies, shell, recovery) -> None:
    until(lambda: '"auditorElected" : true' in shell.shell("clusterinfo"))
    said = shell.shell("clusterinfo")
    assert '"writableBookiesCount" : 5' in said
    assert recovery.bookie_id in shell.shell("whoisauditor")
    shell.shell("lostbookierecoverydelay", "-set", "1")
    assert "delay=1" in shell.shell("lostbookierecoverydelay", "-get")
    shell.shell("autorecovery", "-disable")
    assert '"ledgerReplicationEnabled" : false' in shell.shell("clusterinfo")
    shell.shell("autorecovery", "-enable")
    shell.shell("triggeraudit")
    assert "count=0" in shell.shell("listunderreplicated")
    assert "No Ledger is being recovered" in shell.shell("queryautorecoverystatus")


@pytest.mark.heavy
def test_a_lost_bookie_is_replaced_and_another_decommissioned(
    cluster, bookies, shell, recovery
) -> None:
    """The last test of this file: two bookies are gone."""
    ledger = written(cluster, 50)
    shell.shell("autorecovery", "-disable")
    lost, left = sorted(ensemble(shell, ledger) - {bookies[0].address})[:2]
    by_address = {bookie.address: bookie for bookie in bookies}
    by_address[lost].kill()
    cluster.wait_for(f"/ledgers/available/{lost}", is_there=False)
    shell.shell("recover", "-force", lost)
    assert lost not in ensemble(shell, ledger)
    shell.shell("autorecovery", "-enable")
    by_address[left].stop()
    said = shell.shell("decommissionbookie", "-bookieid", left)
    assert left not in ensemble(shell, ledger), said
    assert cluster.play("ledgers.read", ledger=ledger, password="")["entries"] == texts(50)
