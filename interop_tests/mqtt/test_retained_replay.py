"""Many retained messages, all replayed to one subscription with a wildcard."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from interop_tests.mqtt.conftest import Paho
from interop_tests.mqtt.crash.device import Device
from interop_tests.mqtt.test_mosquitto import tool
from magnetar import standalone
from magnetar.wire.mqtt.tests import peer

WINDOW = 500
SECONDS = 100
PAYLOAD_BYTES = 100


def payload(number: int) -> bytes:
    return b"%d" % number * PAYLOAD_BYTES


def retain(server: Any, count: int) -> None:
    """Publish them with QoS 1, by hand, since that is quick."""
    with Device(server, "writer", clean=True) as writer:
        for begin in range(0, count, WINDOW):
            writer.say(*(
                peer.publish(f"fleet/{number}/state", payload(number)[:PAYLOAD_BYTES], qos=1,
                             retain=True, number=number % WINDOW + 1)
                for number in range(begin, begin + WINDOW)
            ))  # fmt: skip
            for _ in range(WINDOW):
                assert writer.take().kind == "PUBACK"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.heavy)])
def test_all_are_replayed(count):
    """paho for 3.1.1 and for 5.0, and mosquitto_sub: each once, with its payload and RETAIN."""
    with standalone() as server:
        retain(server, count)
        host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
        expected = {f"fleet/{number}/state": payload(number)[:PAYLOAD_BYTES]
                    for number in range(count)}  # fmt: skip
        for version in (4, 5):
            reader = Paho(f"{host}:{port}", version=version)
            reader.connect()
            reader.subscribe("fleet/+/state", 1)
            found = reader.take(count)
            assert {one.topic: one.payload for one in found} == expected
            assert all(one.retain and not one.dup for one in found)
            assert reader.received.empty()
            reader.disconnect()
            reader.cut()
        command = [tool("mosquitto_sub"), "-h", host, "-p", port, "-t", "#", "-F", "%r %t %p",
                   "-C", str(count), "-W", str(SECONDS)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, timeout=SECONDS + 5, check=True)
        lines = [line.split() for line in done.stdout.splitlines()]
        assert {one[1].decode(): one[2] for one in lines if one[0] == b"1"} == expected
