"""A bookie of many ledgers is retired while a spare one is there: `bkctl bookies decommission` with
a recovery of ours, and `magnetar bookie decommission` with Apache's AutoRecovery. Afterwards each
bookie has each entry that the metadata say it has.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trio

from interop_tests.bookkeeper.apache import ApacheBookie, running_recovery
from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.members import Cluster, texts
from interop_tests.bookkeeper.recovery import Recovery, asked, command, members, wait_for
from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.replication.fragments import fragments_of
from magnetar.bookie.rpc.messages import ReadEntry, Status

pytestmark = [pytest.mark.heavy, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]
SIZES = [
    {"ensemble": 3, "quorum": 3, "ack": 2},
    {"ensemble": 3, "quorum": 2, "ack": 2},
    {"ensemble": 2, "quorum": 2, "ack": 2},
]
ENTRIES = 30
"""Of each ledger, written in three parts."""
ROUNDS = 6
"""Ledgers of each size."""


@pytest.fixture
def cluster(own_zookeeper, java) -> Cluster:
    return Cluster(own_zookeeper, java, "")


@pytest.fixture
def bookies(cluster, tmp_path) -> Iterator[dict[str, Bookie]]:
    """Four of ours, by their ids."""
    with ExitStack() as stack:
        made = [stack.enter_context(cluster.bookie(tmp_path / name)) for name in "abcd"]
        yield {each.address: each for each in made}


def written(cluster: Cluster, bookies: dict[str, Bookie]) -> list[str]:
    """Ledgers of all sizes, of which most lose a bookie to another one after a third. The last of
    each size is left open.
    """
    third = ENTRIES // 3
    ledgers = [
        cluster.play("ledgers.write", count=third, **sizes)
        for sizes in SIZES
        for _ in range(ROUNDS)
    ]
    lost = bookies[members(cluster.uri, int(ledgers[0]))[0][-1]]
    for first in (third, 2 * third):
        lost.kill() if first == third else lost.start()
        for ledger in ledgers:
            cluster.play("ledgers.append", ledger=ledger, first=first, count=third)
    for number, ledger in enumerate(ledgers, 1):
        if number % ROUNDS:
            cluster.play("ledgers.close", ledger=ledger)
    return ledgers


def replicas(cluster: Cluster, ledger_id: int) -> int:
    """How many entries of a closed ledger its bookies have; all, or it is an error."""

    async def metadata(store) -> LedgerMetadata:
        found = await clusters.find(store)
        return await ClusterLedgers(store, found).read(ledger_id)

    async def read_all(ledger: LedgerMetadata) -> int:
        view = LedgerView(ledger_id, ledger, ledger.password)
        count = 0
        for fragment in fragments_of(ledger, -1):
            assert fragment.closed
            for entry_id in range(fragment.first, fragment.last + 1):
                for position in view.striping.write_set(entry_id):
                    answer = await asked(fragment.ensemble[position], ledger_id, entry_id)
                    assert isinstance(answer, ReadEntry)
                    assert answer.status is Status.OK, (fragment, entry_id, position)
                    view.open_entry(entry_id, answer.entry or b"")
                    count += 1
        return count

    return trio.run(read_all, cluster.ask(metadata))


@pytest.mark.parametrize("tool", ["bkctl", "magnetar"])
def test_a_bookie_is_retired_and_all_is_on_the_others(cluster, bookies, tmp_path, tool) -> None:
    uri = cluster.uri
    ledgers = written(cluster, bookies)
    segments = [each for one in ledgers for each in members(uri, int(one))]
    assert len(segments) > len(ledgers), "some were written to several ensembles"
    retired = members(uri, int(ledgers[0]))[0][0]
    assert sum(retired in each for each in segments) > ROUNDS
    with ExitStack() as stack:
        spare = stack.enter_context(cluster.bookie(tmp_path / "spare"))
        bookies.pop(retired).stop()
        cluster.wait_for(f"/ledgers/available/{retired}", is_there=False)
        if tool == "bkctl":
            recovery = stack.enter_context(Recovery(uri, tmp_path / "recovery"))
            wait_for(lambda: command(uri, "bookie", "who-is-auditor")["auditor"], recovery.log)
            shell = ApacheBookie(uri, tmp_path / "bkctl")
            shell.bkctl("bookies", "decommission", "--bookieid", retired)
        else:
            stack.enter_context(running_recovery(uri, tmp_path / "apache"))
            command(uri, "bookie", "decommission", retired)
        wait_for(lambda: command(uri, "ledger", "under-replicated") == [], str)
        present = {*bookies, spare.address}
        segments = [each for one in ledgers for each in members(uri, int(one))]
        assert set().union(*segments) == present, "the spare one has some, the retired one nothing"
        assert retired not in cluster.ask(lambda store: store.children("/ledgers/cookies"))
        for number, ledger in enumerate(ledgers):
            assert cluster.play("ledgers.read", ledger=ledger, recover=True)["entries"] == texts(
                ENTRIES
            )
            sizes = SIZES[number // ROUNDS]
            assert replicas(cluster, int(ledger)) == ENTRIES * sizes["quorum"]
