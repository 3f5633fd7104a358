"""What tests with MQTT.js share: one process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop_tests import npm
from interop_tests.driver import Driver


@pytest.fixture(scope="session")
def mqtt_node(tmp_path_factory) -> Iterator[Driver]:
    log = tmp_path_factory.mktemp("mqtt-node") / "scenes.log"
    with npm.driver(Path(__file__).parent, "main.js", log) as playing:
        yield playing


@pytest.fixture(params=["tcp", "websocket"])
def url(request, server) -> str:
    """Where clients connect, with each transport."""
    return server.mqtt_url if request.param == "tcp" else server.mqtt_ws_url


@pytest.fixture
def play(mqtt_node, url, topic) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a fresh topic."""
    return lambda family, **args: mqtt_node.play(family, url, topic, **args)
