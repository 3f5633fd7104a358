"""Apache's AutoRecovery in a cluster of our bookies: it finds that one is lost, and has another one
take its entries.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interop_tests.bookkeeper.apache import ApacheBookie, running_recovery
from interop_tests.bookkeeper.members import Cluster, ask, texts
from interop_tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS = 120


@pytest.fixture
def cluster(own_zookeeper, java) -> Cluster:
    return Cluster(own_zookeeper, java, "")


@pytest.fixture
def recovery(cluster, tmp_path) -> Iterator[ApacheBookie]:
    with running_recovery(cluster.uri, tmp_path / "recovery") as made:
        yield made


@pytest.mark.parametrize("state", ["closed", "open"])
def test_a_ledger_of_a_lost_bookie_is_repaired(cluster, recovery, tmp_path, state) -> None:
    """An open one is recovered first, and its writer is fenced."""
    with ExitStack() as stack:
        bookies = {}
        for name in ("a", "b", "c"):
            made = stack.enter_context(cluster.bookie(tmp_path / name, "--http-port", "0"))
            bookies[made.address] = made
        ledger = cluster.play("ledgers.write", count=200, ensemble=2)
        if state == "closed":
            cluster.play("ledgers.close", ledger=ledger)
        http = next(iter(bookies.values())).listeners["http"]

        def seen() -> list[str]:
            where = next(one for one in bookies.values()).listeners["http"]
            found = ask(where, f"/api/v1/ledger/metadata?ledger_id={ledger}")[ledger]
            return [one["id"] for bookies in found["allEnsembles"].values() for one in bookies]

        until(
            lambda: ask(http, "/api/v1/bookie/cluster_info")["auditorElected"],
            recovery.log,
            SECONDS,
        )
        before = seen()
        lost = before[1]
        bookies.pop(lost).kill()
        until(lambda: lost not in seen(), recovery.log, SECONDS)
        (spare,) = set(bookies).difference(before)
        assert spare in seen()
        (kept,) = set(bookies).difference({spare})
        bookies.pop(kept).kill()  # so that only the spare one is there to be read
        found = cluster.play("ledgers.read", ledger=ledger)
        assert found["entries"] == texts(200)
        if state == "open":
            where = bookies[spare].listeners["http"]
            metadata = ask(where, f"/api/v1/ledger/metadata?ledger_id={ledger}")[ledger]
            assert metadata["state"] == "CLOSED"
