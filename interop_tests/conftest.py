"""What all tests with stock clients share: fresh topic names, and clients that log errors only."""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from magnetar import Standalone, pytest_plugin, standalone

from . import golang, npm
from .driver import Driver
from .kafka.java import driver as kafka_jvm
from .over_gateway import Cluster, three_bookies
from .pulsar.java.driver import driver
from .raw import Raw

NUMBERS = itertools.count()
HERE = Path(__file__).parent
ALONE = (
    "test_start.py",
    *(
        f"hostile/test_{what}.py"
        for what in (
            "bookie",
            "long_requests",
            "memory",
            "mqtt_memory",
            "mqtt_websocket",
            "produces",
            "requests",
        )
    ),
)
"""Tests that measure how the whole machine does."""
ROUGH = (
    *("crash", "kafka/crash", "mqtt/crash", "hostile"),
    "bookkeeper/test_zookeeper_faults.py",
    "bookkeeper/test_zookeeper_ensemble.py",
    "bookkeeper/test_zookeeper_registration.py",
    *(
        f"{suite}/test_crash.py"
        for suite in ("kafka/java", "kafka/go", "kafka/node", "pulsar/go", "mqtt/java")
    ),
)
"""Folders and files of tests that would disturb others, and be disturbed: two at a time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--over-gateway",
        action="store_true",
        help="Have a gateway over three bookies as the server of the tests.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("standalone") and config.getoption("--over-gateway"):
            item.add_marker(pytest.mark.skip("a gateway does not promise it"))
        if any(item.path == HERE / part for part in ALONE):
            item.add_marker("alone")
        elif any(item.path.is_relative_to(HERE / part) for part in ROUGH):
            item.add_marker("rough")


def _fresh(request: pytest.FixtureRequest) -> str:
    # with a letter: `test_one_partition` would be the name of a partition of something else; and
    # a partitioned topic may not have `-partition-` in its name
    name = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")
    return name.replace("-partition-", "-partition") + f"-t{next(NUMBERS)}"


@pytest.fixture
def topic(request) -> str:
    """A topic that nobody has used before."""
    return _fresh(request)


@pytest.fixture
def topics(request) -> Callable[[], str]:
    """As many such topics as are asked for."""
    return lambda: _fresh(request)


@pytest.fixture
def connect() -> Iterator[Callable[..., pulsar.Client]]:
    """Makes clients of a server's URL, and closes them after the test."""
    made: list[pulsar.Client] = []

    def make(url: str, **options: Any) -> pulsar.Client:
        options.setdefault("operation_timeout_seconds", 20)
        options.setdefault("connection_timeout_ms", 3_000)
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        made.append(pulsar.Client(url, logger=logger, **options))
        return made[-1]

    yield make
    for client in made:
        client.shutdown()


@pytest.fixture(scope="session")
def cluster_of_run(request, tmp_path_factory) -> Iterator[Cluster | None]:
    """Where the servers of a run with `--over-gateway` store."""
    if not request.config.getoption("--over-gateway"):
        yield None
        return
    with three_bookies(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def _serve(config: pytest.Config, cluster: Cluster | None) -> Iterator[Standalone]:
    settings = pytest_plugin._settings(config)
    with cluster.gateway(settings) if cluster is not None else standalone(**settings) as made:
        yield made


@pytest.fixture(scope="session")
def magnetar(request, cluster_of_run) -> Iterator[Standalone]:
    """The server of the whole run."""
    yield from _serve(request.config, cluster_of_run)


@pytest.fixture(scope="module")
def magnetar_module(request, cluster_of_run) -> Iterator[Standalone]:
    """A server for the tests of one file."""
    yield from _serve(request.config, cluster_of_run)


@pytest.fixture
def magnetar_function(request, cluster_of_run) -> Iterator[Standalone]:
    """A server for one test, which can kill and restart it."""
    yield from _serve(request.config, cluster_of_run)


@pytest.fixture
def server(magnetar):
    """The server of the whole run; a test that comes after its end says so at once."""
    assert magnetar.running, "the server has ended"
    yield magnetar
    assert magnetar.running, "the server has ended"


@pytest.fixture
def client(server, connect) -> pulsar.Client:
    return connect(server.pulsar_url)


@pytest.fixture(scope="session")
def java(tmp_path_factory) -> Iterator[Driver]:
    """The Java client, in a process of its own."""
    with driver(tmp_path_factory.mktemp("java")) as playing:
        yield playing


@pytest.fixture(scope="session")
def pulsar_go(tmp_path_factory) -> Iterator[Driver]:
    """Apache's client for Go, in a process of its own."""
    log = tmp_path_factory.mktemp("pulsar-go") / "scenes.log"
    with Driver([str(golang.build(HERE / "pulsar" / "go"))], log) as playing:
        yield playing


@pytest.fixture(scope="session")
def mqtt_go(tmp_path_factory) -> Iterator[Driver]:
    """Eclipse's client of MQTT 5.0 for Go, in a process of its own."""
    log = tmp_path_factory.mktemp("mqtt-go") / "scenes.log"
    with Driver([str(golang.build(HERE / "mqtt" / "go"))], log) as playing:
        yield playing


@pytest.fixture(scope="session")
def kafka_java(tmp_path_factory) -> Iterator[Driver]:
    """Kafka's Java clients, in a process of their own."""
    with kafka_jvm.driver(tmp_path_factory.mktemp("kafka-java")) as playing:
        yield playing


@pytest.fixture(scope="session")
def kafka_go(tmp_path_factory) -> Iterator[Driver]:
    """Kafka's clients for Go, in a process of their own."""
    log = tmp_path_factory.mktemp("kafka-go") / "scenes.log"
    with Driver([str(golang.build(HERE / "kafka" / "go"))], log) as playing:
        yield playing


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory) -> Iterator[Driver]:
    """KafkaJS, in a process of its own."""
    log = tmp_path_factory.mktemp("kafka-node") / "scenes.log"
    with npm.driver(HERE / "kafka" / "node", "main.js", log) as playing:
        yield playing


@pytest.fixture
def raw() -> type[Raw]:
    """Opens bare connections: `with raw(server) as peer`."""
    return Raw
