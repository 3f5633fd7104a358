"""`pulsarctl bookkeeper`, each of its verbs, on a bookie of ours in a cluster with a recovery."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.members import Cluster
from interop_tests.bookkeeper.recovery import Recovery, command, wait_for
from interop_tests.pulsar import pulsarctl_verbs
from interop_tests.pulsar.pulsarctl import Pulsarctl
from interop_tests.pulsar.verb_table import documented

pytestmark = [pytest.mark.heavy, pytest.mark.java, pytest.mark.timeout(300)]
TWO = {"ensemble": 2, "quorum": 2, "ack": 2}


@pytest.fixture
def cluster(own_zookeeper, java) -> Cluster:
    return Cluster(own_zookeeper, java, "")


@pytest.fixture
def bookie(cluster, tmp_path) -> Iterator[Bookie]:
    """Of the two bookies of a ledger the other one is lost, and nobody can take its place."""
    with ExitStack() as stack:
        made = stack.enter_context(cluster.bookie(tmp_path / "bookie", "--http-port", "0"))
        with cluster.bookie(tmp_path / "lost"):
            cluster.play("ledgers.close", ledger=cluster.play("ledgers.write", count=1, **TWO))
        recovery = stack.enter_context(Recovery(cluster.uri, tmp_path / "recovery"))
        wait_for(lambda: command(cluster.uri, "ledger", "under-replicated"), recovery.log)
        yield made


def test_each_verb(cluster: Cluster, bookie: Bookie, tmp_path: Path) -> None:
    ledger = cluster.play("ledgers.write", count=10, ensemble=1, quorum=1, ack=1)
    cluster.play("ledgers.close", ledger=ledger)
    ctl = Pulsarctl(tmp_path, f"http://{bookie.listeners['http']}")
    fillers = {"{ledger}": ledger, "{bookie}": bookie.address}
    lines = pulsarctl_verbs.bookkeeper()
    ctl.check(lines, documented("pulsarctl"), fillers, cluster.registered)
