"""A cluster whose bookies register themselves in a real ZooKeeper, with Apache's client of it."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from interop_tests.driver import Driver
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata, open_zookeeper

ONE = "6a1f0f3e-0000-4000-8000-000000000001"
THREE = {"ensemble": 3, "quorum": 3, "ack": 2}
SESSION = ("--zk-timeout", "2")


class Cluster:
    """A ZooKeeper, and what a client of Apache's does through it."""

    def __init__(self, zookeeper: ZooKeeper, java: Driver, root: str) -> None:
        self.zookeeper = zookeeper
        self.uri = f"zk+hierarchical://{zookeeper.address}/{root}ledgers"
        self._java = java
        trio.run(self._format)

    async def _format(self) -> None:
        async with open_zookeeper(parse(self.uri), 10) as store:
            await initialize_cluster(store, ONE)

    def ask(self, call: Callable[[ZooKeeperMetadata], Any]) -> Any:
        """What the metadata store answers to somebody else."""

        async def asked() -> Any:
            async with open_zookeeper(parse(self.uri), 10) as store:
                await store.sync()
                return await call(store)

        return trio.run(asked)

    def wait_for(self, path: str, *, is_there: bool = True) -> None:
        """Until there is a node, or none any more."""

        async def seen(store: ZooKeeperMetadata) -> None:
            with trio.fail_after(30):
                while (await store.get(path) is not None) is not is_there:
                    await store.sync()

        self.ask(seen)

    def registered(self) -> list[str]:
        names = self.ask(lambda store: store.children("/ledgers/available"))
        return [name for name in names if name != "readonly"]

    def play(self, family: str, **args: Any) -> Any:
        return self._java.play(family, self.uri, "", **args)

    def bookie(self, folder: Path, *more: str) -> Bookie:
        folder.mkdir(exist_ok=True)
        return Bookie(folder, "--metadata-uri", self.uri, *SESSION, *more)


def texts(count: int) -> list[str]:
    return [f"entry {i}" for i in range(count)]


def ask(where: str, path: str, method: str = "GET", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{where}{path}", data, method=method)
    with urllib.request.urlopen(request, timeout=20) as response:
        found = response.read().decode()
    return json.loads(found) if response.headers["content-type"] == "application/json" else found
