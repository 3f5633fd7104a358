"""Connections to the Kafka port that do not say who they are."""

from __future__ import annotations

import base64
import hashlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from magnetar import Standalone, standalone
from magnetar.wire.kafka.messages.basics import ApiVersionsRequest
from magnetar.wire.kafka.tests.frame import framed

SPAN_SECONDS = 1.0
DEADLINE_SECONDS = 20.0


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A server that gives a connection a second to authenticate."""
    file = Path(tmp_path_factory.mktemp("impatient")) / "htpasswd"
    digest = base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
    file.write_text(f"root:{{SHA}}{digest}\n", encoding="utf-8")
    file.chmod(0o600)
    security = {"htpasswd": str(file), "superusers": ["root"]}
    with standalone(security=security, limits={"keep_alive_seconds": SPAN_SECONDS}) as server:
        yield server


def seconds_to_live(server: Standalone, said: bytes) -> float:
    """How long a connection lives that says the same again and again."""
    host, _, port = server.bootstrap_servers.rpartition(":")
    begun = time.monotonic()
    with socket.create_connection((host, int(port)), DEADLINE_SECONDS) as peer:
        peer.settimeout(SPAN_SECONDS / 5)
        while time.monotonic() - begun < DEADLINE_SECONDS:
            try:
                peer.sendall(said)
                if not peer.recv(65536):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
            time.sleep(SPAN_SECONDS / 10)
    return time.monotonic() - begun


@pytest.mark.parametrize("said", [framed(ApiVersionsRequest(), 2), b""], ids=["asks", "silent"])
def test_a_stranger_has_little_time(impatient: Standalone, said: bytes) -> None:
    assert seconds_to_live(impatient, said) < 5 * SPAN_SECONDS


def test_who_authenticates_stays(impatient: Standalone, topic: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": impatient.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "root",
            "sasl.password": "secret",
            "log_level": 0,
        }
    )
    gone: list[object] = []
    for _ in range(2):
        producer.produce(topic, b"x", on_delivery=lambda error, _: gone.append(error))
        assert producer.flush(DEADLINE_SECONDS) == 0
        assert seconds_to_live(impatient, framed(ApiVersionsRequest(), 2)) < 5 * SPAN_SECONDS
    assert gone == [None, None]
