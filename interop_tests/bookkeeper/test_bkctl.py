"""`bkctl`, Apache's newer command line, on a cluster of our bookies: each command that goes over
the network or to the metadata. (The others read a bookie's files, as the shell's do.)
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interop_tests.bookkeeper.apache import ApacheBookie
from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.recovery import Recovery, wait_for
from interop_tests.bookkeeper.test_cluster_bookies import ONE, Cluster
from interop_tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]
RANGE = ("--firstentryid", "0", "--lastentryid", "9")
THREE = {"ensemble": 3, "quorum": 3, "ack": 2, "password": ""}


@pytest.fixture(scope="module")
def cluster(zookeeper, java) -> Cluster:
    return Cluster(zookeeper, java, "")


@pytest.fixture(scope="module")
def bookies(cluster, tmp_path_factory) -> Iterator[list[Bookie]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(cluster.bookie(tmp_path_factory.mktemp("bookie"))) for _ in range(4)
        ]


@pytest.fixture(scope="module")
def apache(cluster, bookies, tmp_path_factory) -> ApacheBookie:
    """On the machine of the first bookie."""
    port = int(bookies[0].address.rpartition(":")[2])
    return ApacheBookie(cluster.uri, tmp_path_factory.mktemp("bkctl"), port)


def test_bookies(apache, bookies) -> None:
    said = apache.bkctl("bookies", "list", "--readwrite")
    assert all(bookie.address in said for bookie in bookies)
    said = apache.bkctl("bookies", "info")
    assert all(bookie.address in said for bookie in bookies)
    assert "Total disk capacity" in said
    assert re.search(r"totalBookiesCount\W+4", apache.bkctl("bookies", "cluster-info"))
    assert ONE in apache.bkctl("bookies", "instanceid")
    where = bookies[1].address
    assert where in apache.bkctl("bookie", "endpointinfo", "--bookieid", where)


@pytest.mark.heavy
def test_ledgers(cluster, apache, bookies, tmp_path) -> None:
    apache.bkctl("ledger", "simpletest", "-e", "3", "-w", "3", "-a", "2", "-n", "50")
    apache.bkctl("bookie", "sanitytest", "--entries", "20")
    ledger = cluster.play("ledgers.write", count=10, **THREE)
    cluster.play("ledgers.close", ledger=ledger)
    assert ledger in apache.bkctl("bookie", "listledgers", "--meta")
    said = apache.bkctl("bookie", "readledger", "--ledgerid", ledger, *RANGE, "--msg")
    assert "entry 9" in said
    one = bookies[0].address
    apache.bkctl("bookie", "readledger", "--ledgerid", ledger, *RANGE, "--bookie", one)
    said = apache.bkctl("ledger", "show", "--ledgerid", ledger)
    assert "CLOSED" in said
    kept = str(tmp_path / "metadata")
    apache.bkctl("ledger", "show", "--ledgerid", ledger, "--dumptofile", kept)
    assert (tmp_path / "metadata").stat().st_size
    apache.bkctl("ledger", "delete", "--ledgerid", ledger, "--force")
    apache.bkctl("ledger", "show", "--ledgerid", ledger, succeeds=False)


@pytest.mark.heavy
def test_autorecovery(cluster, apache, bookies, tmp_path) -> None:
    apache.bkctl("autorecovery", "toggle")
    assert "false" in apache.bkctl("autorecovery", "toggle", "--status").lower()
    apache.bkctl("autorecovery", "toggle", "--enable")
    assert "true" in apache.bkctl("autorecovery", "toggle", "--status").lower()
    with Recovery(cluster.uri, tmp_path, "--bookie-id", "auditor:1") as recovery:
        wait_for(lambda: "auditor:1" in apache.bkctl("autorecovery", "whoisauditor"), recovery.log)
        apache.bkctl("autorecovery", "lostbookierecoverydelay", "--set", "5")
        assert "5" in apache.bkctl("autorecovery", "lostbookierecoverydelay", "--get")
        apache.bkctl("autorecovery", "triggeraudit")
        apache.bkctl("autorecovery", "queryautorecoverystatus")
        apache.bkctl("autorecovery", "listunderreplicated")


def test_a_bookie_is_emptied(cluster, apache, bookies) -> None:
    """Retiring one is `decommissionbookie` of the shell, in `test_shell_of_cluster.py`."""
    ledger = cluster.play("ledgers.write", count=10, **THREE)
    cluster.play("ledgers.close", ledger=ledger)
    gone = bookies[3]
    apache.bkctl("bookies", "recover", "--query", "--force", "--bokiesrc", gone.address)
    gone.stop()
    apache.bkctl("bookies", "recover", "--force", "--bokiesrc", gone.address)
    assert gone.address not in apache.bkctl("ledger", "show", "--ledgerid", ledger)
    assert cluster.play("ledgers.read", ledger=ledger, password="")["entries"]
    gone.start()


def test_cookies(cluster, apache, bookies, tmp_path) -> None:
    one = bookies[0].address
    assert one in apache.bkctl("cookie", "get", one)
    made = tmp_path / "cookie"
    apache.bkctl(
        "cookie", "generate", "--journal-dirs", "/j", "--ledger-dirs", "/l",
        "--output-file", str(made), "other:3181",
    )  # fmt: skip
    assert ONE in made.read_text()
    apache.bkctl("cookie", "create", "--cookie-file", str(made), "other:3181")
    assert "/j" in apache.bkctl("cookie", "get", "other:3181")
    apache.bkctl("cookie", "update", "--cookie-file", str(made), "other:3181")
    apache.bkctl("cookie", "delete", "other:3181")
    apache.bkctl("cookie", "get", "other:3181", succeeds=False)


def test_the_health_check(apache) -> None:
    apache.bkctl("healthCheck", "switch", "--status")
    apache.bkctl("healthCheck", "switch")
    apache.bkctl("healthCheck", "switch", "--enable")


@pytest.mark.heavy
def test_a_cluster_begins_anew(own_zookeeper, java, tmp_path) -> None:
    cluster = Cluster(own_zookeeper, java, "")
    apache = ApacheBookie(cluster.uri, tmp_path / "apache")
    apache.bkctl("bookies", "metaformat", "--force")
    instance = re.search(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", apache.bkctl("bookies", "instanceid")
    )
    assert instance is not None
    with cluster.bookie(tmp_path / "ours") as bookie:
        assert bookie.address in apache.bkctl("bookies", "list")
    until(lambda: not cluster.registered())
    apache.bkctl(
        "bookies", "nukeexistingcluster", "--zkledgersrootpath", "/ledgers",
        "--instanceid", instance[0],
    )  # fmt: skip
    apache.bkctl("bookies", "init")
    assert apache.bkctl("bookies", "instanceid")
