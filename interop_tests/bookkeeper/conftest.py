"""What the tests of a file share: a ZooKeeper (a test that stops it starts its own), and the JVM
with Apache's client.
"""

from collections.abc import Iterator

import pytest

from interop_tests.bookkeeper.cluster import driver
from interop_tests.bookkeeper.zookeeper import ZooKeeper, running
from interop_tests.driver import Driver


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory) -> Iterator[ZooKeeper]:
    with running(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def own_zookeeper(tmp_path) -> Iterator[ZooKeeper]:
    """One that the test may stop, freeze and kill."""
    with running(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture(scope="module")
def java(tmp_path_factory) -> Iterator[Driver]:
    with driver(tmp_path_factory.mktemp("java")) as started:
        yield started
