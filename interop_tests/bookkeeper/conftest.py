"""A ZooKeeper that the tests of a file share; a test that stops it starts its own."""

from collections.abc import Iterator

import pytest

from interop_tests.bookkeeper.zookeeper import ZooKeeper, running


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory) -> Iterator[ZooKeeper]:
    with running(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def own_zookeeper(tmp_path) -> Iterator[ZooKeeper]:
    """One that the test may stop, freeze and kill."""
    with running(tmp_path / "zookeeper") as server:
        yield server
