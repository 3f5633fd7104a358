"""What tests with Kafka's Java clients share: one JVM."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interop_tests.driver import Driver

from .driver import driver


@pytest.fixture(scope="session")
def kafka_java(tmp_path_factory) -> Iterator[Driver]:
    with driver(tmp_path_factory.mktemp("kafka-java")) as playing:
        yield playing


@pytest.fixture
def play(kafka_java, server) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a topic that it is told."""

    def played(family: str, topic: str, **args: Any) -> Any:
        return kafka_java.play(family, server.bootstrap_servers, topic, **args)

    return played
