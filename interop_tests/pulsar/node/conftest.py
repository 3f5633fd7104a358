"""What tests with Node's client of WebSockets share: one process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop_tests import npm
from interop_tests.driver import Driver


@pytest.fixture(scope="session")
def pulsar_node(tmp_path_factory) -> Iterator[Driver]:
    log = tmp_path_factory.mktemp("pulsar-node") / "scenes.log"
    with npm.driver(Path(__file__).parent, "main.js", log) as playing:
        yield playing


@pytest.fixture
def play(pulsar_node, server, topic) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a fresh topic."""
    url = server.http_url.replace("http://", "ws://")
    return lambda family, **args: pulsar_node.play(family, url, topic, **args)
