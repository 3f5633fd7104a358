"""What tests with Kafka's clients for Node share: one process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop_tests import npm
from interop_tests.driver import Driver


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory) -> Iterator[Driver]:
    log = tmp_path_factory.mktemp("kafka-node") / "scenes.log"
    with npm.driver(Path(__file__).parent, "main.js", log) as playing:
        yield playing


@pytest.fixture
def play(kafka_node, server, topic) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a fresh topic."""
    return lambda family, **args: kafka_node.play(family, server.bootstrap_servers, topic, **args)
