"""What publishers through a gateway notice when somebody recovers the ledgers that it writes, as
AutoRecovery does after a bookie was lost: nothing.
"""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.gateway import SESSION_SECONDS, Gateway
from interop_tests.bookkeeper.publishers import PUBLISHERS, read_all
from interop_tests.bookkeeper.recovery import command
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import ClientMachine, open_cluster_ledgers
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]
QUORUM = ("--ensemble-size", "3", "--write-quorum", "3", "--ack-quorum", "2")
ROUNDS = 5
PAUSE_SECONDS = 1.0
"""Between two rounds, in which clients publish."""


@pytest.fixture
def bookies(own_zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[str]:
    """The URI of a cluster with three."""
    uri = f"zk+hierarchical://{own_zookeeper.address}/ledgers"
    command(uri, "bookie", "init-cluster")
    with ExitStack() as stack:
        for number in range(3):
            folder = tmp_path / f"bookie{number}"
            folder.mkdir()
            flags = ("--metadata-uri", uri, "--zk-timeout", str(SESSION_SECONDS))
            stack.enter_context(Bookie(folder, *flags))
        yield uri


async def recover_all(uri: str) -> int:
    """Recover each ledger of a cluster; returns how many were open."""
    machine = ClientMachine(SystemNetwork(), SystemClock(), random.Random(1))
    settings = QuorumSettings(striping=Striping(3, 3, 2))
    opened = 0
    async with open_zookeeper(parse(uri), 10) as metadata:
        cluster = await clusters.find(metadata)
        async with open_cluster_ledgers(metadata, cluster, machine, settings) as store:
            for found in command(uri, "ledger", "list"):
                if not (await store.info(found["ledger"])).closed:
                    await store.open(found["ledger"], recover=True)
                    opened += 1
    return opened


def test_recovered_ledgers_are_noticed_by_no_client(
    own_zookeeper: ZooKeeper, bookies: str, tmp_path: Path
) -> None:
    """Each message is stored once, and in order, since no client has sent any again."""
    with Gateway(tmp_path / "gateway", own_zookeeper, *QUORUM) as gateway:
        gateway.serve()
        publishers = [kind(name).begin(gateway) for name, kind in PUBLISHERS.items()]
        for _ in range(ROUNDS):
            time.sleep(PAUSE_SECONDS)
            assert trio.run(recover_all, bookies) >= len(publishers)
        time.sleep(PAUSE_SECONDS)
        for publisher in publishers:
            publisher.finish()
            assert not publisher.failed, publisher.failed[:3]
        for publisher in publishers:
            found = read_all(gateway, publisher.stored_in)
            assert found == publisher.acknowledged
            assert found == [f"m{number}" for number in range(len(found))]
        assert "was closed by a recovery: going on in another" in gateway.log()
