"""What tests with Java's clients of MQTT share: one JVM."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop_tests import jvm
from interop_tests.driver import Driver


@pytest.fixture(scope="session")
def mqtt_java(tmp_path_factory) -> Iterator[Driver]:
    command = jvm.command(Path(__file__).parent, "magnetar.interop.mqtt.Main", heap="512m")
    with Driver(command, tmp_path_factory.mktemp("mqtt-java") / "scenes.log") as playing:
        yield playing


@pytest.fixture
def play(mqtt_java, server, topic) -> Callable[..., Any]:
    """Plays a scene on the server of the whole run, with a fresh topic."""
    return lambda family, **args: mqtt_java.play(family, server.mqtt_url, topic, **args)
