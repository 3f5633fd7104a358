"""What tests with Kafka's clients for Go share: one process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop_tests import golang
from interop_tests.driver import Driver


@pytest.fixture(scope="session")
def kafka_go(tmp_path_factory) -> Iterator[Driver]:
    log = tmp_path_factory.mktemp("kafka-go") / "scenes.log"
    with Driver([str(golang.build(Path(__file__).parent))], log) as playing:
        yield playing


@pytest.fixture
def play(kafka_go, server, topic) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a fresh topic."""
    return lambda family, **args: kafka_go.play(family, server.bootstrap_servers, topic, **args)
