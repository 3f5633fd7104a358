"""What tests with MQTT's clients share: paho, with everything that it receives."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from interop_tests.keys import Authority
from magnetar import standalone

SECONDS = 60.0


class Paho:
    """One client of paho's, on a thread of its own."""

    def __init__(self, address: str, client_id: str = "", version: int = 4, **options: Any) -> None:
        protocol = MQTTProtocolVersion(version)
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=protocol, **options
        )
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.received: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        self.connacks: queue.Queue[tuple[bool, Any, Any]] = queue.Queue()
        self.disconnects: queue.Queue[Any] = queue.Queue()
        self._subacks: queue.Queue[list[Any]] = queue.Queue()
        self.client.on_message = lambda _client, _data, message: self.received.put(message)
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = lambda *args: self.disconnects.put(args[3])
        self.client.on_subscribe = lambda *args: self._subacks.put(args[3])
        self.client.on_unsubscribe = lambda *args: self._subacks.put(args[3])

    def _on_connect(self, _client: Any, _data: Any, flags: Any, reason: Any, found: Any) -> None:
        self.connacks.put((flags.session_present, reason, found))

    def connect(self, **options: Any) -> bool:
        """Connect; returns session present."""
        self.client.connect(self.host, self.port, **options)
        self.client.loop_start()
        present, reason, _ = self.connacks.get(timeout=SECONDS)
        assert not reason.is_failure, reason
        return bool(present)

    def subscribe(self, *arguments: Any, **options: Any) -> list[int]:
        self.client.subscribe(*arguments, **options)
        return [reason.value for reason in self._subacks.get(timeout=SECONDS)]

    def unsubscribe(self, *filters: str) -> None:
        self.client.unsubscribe(list(filters))
        self._subacks.get(timeout=SECONDS)

    def publish(self, topic: str, payload: Any = b"", qos: int = 0, **options: Any) -> None:
        """Publish, and wait until it is acknowledged."""
        self.client.publish(topic, payload, qos, **options).wait_for_publish(SECONDS)

    def take(self, count: int) -> list[mqtt.MQTTMessage]:
        return [self.received.get(timeout=SECONDS) for _ in range(count)]

    def disconnect(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
        # Its thread may have ended before the socket was closed; those that wake it are still open.
        self.client._reset_sockets()

    def cut(self) -> None:
        """Close the socket without DISCONNECT, for good."""
        loop, self.client._thread_terminate = self.client._thread, True
        self.client._reset_sockets()
        if isinstance(loop, threading.Thread):
            loop.join(SECONDS)

    def stumble(self) -> None:
        """Lose the connection; the client's own thread connects again."""
        sock = self.client.socket()
        assert sock is not None
        sock.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def paho(server) -> Iterator[Callable[..., Paho]]:
    """Makes clients of the run's server; those that are left are disconnected."""
    made: list[Paho] = []

    def make(client_id: str = "", version: int = 4, address: str = "", **options: Any) -> Paho:
        made.append(Paho(address or server.mqtt_url.removeprefix("mqtt://"), client_id, version,
                         **options))  # fmt: skip
        return made[-1]

    yield make
    for client in made:
        client.disconnect()


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="session")
def secure(authority) -> Iterator[Any]:
    """A server that has a certificate of that authority."""
    certificate, key = authority.issue("server")
    with standalone(tls_certificate=certificate, tls_key=key) as server:
        yield server
