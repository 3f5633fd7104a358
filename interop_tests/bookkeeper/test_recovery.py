"""Our AutoRecovery: what a lost bookie had is on others afterwards, for Apache's client."""

from contextlib import ExitStack

import pytest

from interop_tests.bookkeeper.recovery import Recovery, is_repaired, members, wait_for
from interop_tests.bookkeeper.test_cluster_bookies import Cluster, texts

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
            for made in [stack.enter_context(cluster.bookie(tmp_path / name)) for name in "abcd"]
        }


SIZES = [{"ensemble": 3, "quorum": 3, "ack": 2}, {"ensemble": 3, "quorum": 2, "ack": 2}]


@pytest.mark.parametrize("sizes", SIZES, ids=["E3W3A2", "E3W2A2"])
def test_a_closed_ledger_of_a_lost_bookie(cluster, bookies, tmp_path, sizes) -> None:
    ledger = cluster.play("ledgers.write", count=500, **sizes)
    cluster.play("ledgers.close", ledger=ledger)
    with Recovery(cluster.uri, tmp_path / "recovery") as recovery:
        ((lost, *kept),) = members(cluster.uri, int(ledger))
        bookies.pop(lost).kill()
        wait_for(lambda: is_repaired(cluster.uri, int(ledger), lost), recovery.log)
        assert recovery.stop() == 0
    ((new, *_),) = members(cluster.uri, int(ledger))
    for bookie in kept[: sizes["quorum"] - 1]:
        bookies.pop(bookie).kill()
    found = cluster.play("ledgers.read", ledger=ledger)
    assert found["entries"] == texts(500)
    assert new in bookies
