"""A gateway over three bookies in place of the standalone server, for the suites of stock clients:
`pytest --over-gateway interop_tests/...`.

All servers of a run share the bookies; each has metadata of its own in their ZooKeeper.
"""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import trio

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.zookeeper import ZooKeeper, running
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.child import Standalone
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

INSTANCE = "6a1f0f3e-0000-4000-8000-000000000003"


class Cluster:
    """Where gateways of this run keep everything."""

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._address = zookeeper.address
        self.uri = f"zk+hierarchical://{self._address}/ledgers"
        self._numbers = itertools.count()

    async def begin(self) -> None:
        async with open_zookeeper(parse(self.uri), 10) as store:
            await initialize_cluster(store, INSTANCE)

    def gateway(self, settings: dict[str, Any]) -> Standalone:
        """One that has not started, with metadata of its own."""
        metadata = f"zk:{self._address}/gateway-{next(self._numbers)}"
        where = ("--metadata", metadata, "--bookkeeper", self.uri, "--zk-timeout", "5")
        quorum = ("--ensemble-size", "3", "--write-quorum", "3", "--ack-quorum", "2")
        return Standalone(settings, None, ("gateway", *where, *quorum))


@contextmanager
def three_bookies(folder: Path) -> Iterator[Cluster]:
    """A cluster with three bookies of ours."""
    with ExitStack() as stack:
        made = Cluster(stack.enter_context(running(folder / "zookeeper")))
        trio.run(made.begin)
        for number in range(3):
            (folder / str(number)).mkdir()
            stack.enter_context(Bookie(folder / str(number), "--metadata-uri", made.uri))
        yield made
