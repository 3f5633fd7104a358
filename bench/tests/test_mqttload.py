"""The generator for MQTT, against our own server: what it counts, and what it refuses."""

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.drive import generator
from bench.peers.mosquitto import configuration
from magnetar import Standalone, standalone


@pytest.fixture(scope="module")
def server() -> Iterator[Standalone]:
    generator.build([generator.MQTTLOAD])
    with standalone(sync=False) as started:
        yield started


def run(server: Standalone, topic: str, *arguments: str) -> generator.Line:
    port = int(server.mqtt_url.rpartition(":")[2])
    told = ["--topic", topic, "--messages", "3000", "--stall", "10", *arguments]
    return generator.run(generator.MQTTLOAD, port, told)


@pytest.mark.parametrize("level", ["4", "5"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
@pytest.mark.parametrize(("writers", "readers"), [(1, 1), (5, 1), (1, 7)])
def test_each_reader_gets_each_message_once(
    server: Standalone, qos: str, level: str, writers: int, readers: int
) -> None:
    shape = ["--connections", str(writers), "--consumers", str(readers), "--qos", qos]
    topic = f"t-{qos}-{level}-{writers}-{readers}"
    line = run(server, topic, "--mode", "both", *shape, "--level", level, "--depth", "50")
    assert line.trouble == {}
    assert (line.ok, line.published, line.consumed) == (True, 3000, 3000 * readers)


def test_publishing_alone(server: Standalone) -> None:
    line = run(server, "alone", "--mode", "publish", "--qos", "1", "--bytes", "5000")
    assert (line.ok, line.published, line.consumed) == (True, 3000, 0)
    assert line.publish_latency is not None
    assert line.publish_latency.count == 3000


def test_each_retained_message_is_found_once(server: Standalone) -> None:
    port = int(server.mqtt_url.rpartition(":")[2])
    shape = ["--topic", "retained", "--qos", "1", "--stall", "10"]
    publishing = [*shape, "--mode", "publish", "--retain", "--connections", "3"]
    assert generator.run(generator.MQTTLOAD, port, [*publishing, "--messages", "500"]).ok
    reading = [*shape, "--mode", "consume"]
    line = generator.run(generator.MQTTLOAD, port, [*reading, "--messages", "500"])
    assert (line.trouble, line.consumed) == ({}, 500)
    line = generator.run(generator.MQTTLOAD, port, [*reading, "--messages", "501", "--stall", "1"])
    assert not line.ok


def test_sessions_sleep_when_their_clients_have_left(server: Standalone) -> None:
    port = int(server.mqtt_url.rpartition(":")[2])
    told = ["--mode", "subscribe", "--topic", "asleep", "--keep", "--qos", "1"]
    line = generator.run(
        generator.MQTTLOAD, port, [*told, "--consumers", "20", "--subscriptions", "3"]
    )
    assert line.trouble == {}
    for _ in range(200):  # the last ones have just left
        if re.search(r"^magnetar_mqtt_sessions_asleep(?:{.*})? 20(\.0)?$", metrics(server), re.M):
            return
    raise AssertionError(metrics(server))


def metrics(server: Standalone) -> str:
    with urllib.request.urlopen(f"{server.http_url}/metrics", timeout=10) as answer:
        page: str = answer.read().decode()
    return page


def test_idle_clients_stay_attached(server: Standalone) -> None:
    port = int(server.mqtt_url.rpartition(":")[2])
    child = generator.start_idle(generator.MQTTLOAD, port, ["--topic", "idle"])
    try:
        assert child.poll() is None
    finally:
        child.kill()
        child.communicate()


def test_the_peer_is_configured(tmp_path: Path) -> None:
    assert "persistence true" in configuration(tmp_path, 1883, True)
    assert "persistence false" in configuration(tmp_path, 1883, False)
