"""What tests with Kafka's clients for Node share."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def play(kafka_node, server, topic) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a fresh topic."""
    return lambda family, **args: kafka_node.play(family, server.bootstrap_servers, topic, **args)
