"""What tests with Kafka's Java clients share."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def play(kafka_java, server) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a topic that it is told."""

    def played(family: str, topic: str, **args: Any) -> Any:
        return kafka_java.play(family, server.bootstrap_servers, topic, **args)

    return played
