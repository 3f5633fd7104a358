"""One ZooKeeper, one JVM and four bookies of ours for all tests with Apache's client."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interop_tests.bookkeeper.cluster import Bookie, Client, ZooKeeper, driver


@pytest.fixture(scope="session")
def client(tmp_path_factory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("bookkeeper")
    with ZooKeeper(folder) as zookeeper, driver(folder) as java:
        made = Client(zookeeper, java)
        assert made.play("cluster.init")
        yield made


@pytest.fixture(scope="session")
def bookies(client, tmp_path_factory) -> Iterator[list[Bookie]]:
    with ExitStack() as running:
        made = [running.enter_context(Bookie(tmp_path_factory.mktemp("bookie"))) for _ in range(4)]
        for bookie in made:
            client.register(bookie)
        yield made
