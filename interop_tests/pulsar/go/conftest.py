"""What tests with Apache's client for Go share: one process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop_tests import golang
from interop_tests.driver import Driver


@pytest.fixture(scope="session")
def pulsar_go(tmp_path_factory) -> Iterator[Driver]:
    log = tmp_path_factory.mktemp("pulsar-go") / "scenes.log"
    with Driver([str(golang.build(Path(__file__).parent))], log) as playing:
        yield playing


@pytest.fixture
def play(pulsar_go, server, topic):
    """Plays a scene on the server of the whole run, with a fresh topic."""
    return lambda family, **args: pulsar_go.play(family, server.pulsar_url, topic, **args)
