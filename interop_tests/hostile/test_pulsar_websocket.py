"""What is no request, no frame, no JSON and no answer, at Pulsar's WebSocket API."""

from __future__ import annotations

import base64
import json
import socket
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from interop_tests.hostile.test_mqtt_websocket import (
    BINARY,
    CLOSE,
    FIN,
    PING,
    SECONDS,
    TEXT,
    frame,
)
from interop_tests.waiting import until

pytestmark = pytest.mark.usefixtures("bystander")

HEAD = (
    "GET /ws/v2/%s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
PRODUCER, CONSUMER = (
    "producer/persistent/public/default/%s",
    "consumer/persistent/public/default/%s/s",
)


class Peer:
    """A socket at the HTTP port."""

    def __init__(self, server: Any) -> None:
        host, _, port = server.http_url.partition("://")[2].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=SECONDS)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def opened(self, path: str) -> Peer:
        self.socket.sendall((HEAD % path).encode())
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += self.socket.recv(4096)
        assert heard.startswith(b"HTTP/1.1 101"), heard
        return self

    def say(self, data: bytes) -> Peer:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)
        return self

    def until_closed(self) -> bytes:
        heard = b""
        with suppress(ConnectionResetError):
            while data := self.socket.recv(65_536):
                heard += data
        return heard


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /ws/ HTTP/1.1\r\n\r\n",
        (HEAD % "").replace("/ws/v2/", "/ws/v2").encode(),
        b"GET /ws/v2/producer/x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /ws/" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /ws/\xff\xfe\r\n\r\n",
        b"GET /ws/v2/consumer/persistent/public/default/%00/%2e%2e HTTP/1.1\r\n\r\n",
        (HEAD % "producer/persistent/public/default/t?encryptionKeys=%s" % ("A" * 9_000)).encode(),
        (HEAD % "reader/persistent/public/default/t?messageId=////").encode(),
        (HEAD % f"consumer/persistent/public/default/{'t' * 5_000}/s").encode(),
    ],
)
def test_what_is_no_request(magnetar_module: Any, request_line: bytes) -> None:
    with Peer(magnetar_module) as peer:
        heard = peer.say(request_line).until_closed()
    assert heard.startswith(b"HTTP/1.1 4")
    assert b'"reason"' in heard


@pytest.mark.parametrize(
    "said",
    [
        frame(FIN | TEXT, b"\xff\xfe"),
        frame(FIN | TEXT, b"{}", masked=False),
        frame(FIN | BINARY, b"{}"),
        frame(FIN | 3, b""),
        frame(FIN | PING, b"x" * 126),
        frame(FIN | TEXT, size=1 << 62),
        frame(FIN | PING) * 2_000,
        frame(TEXT, b"x" * 1_000_000) + frame(0, b"x" * 1_000_000) * 40,
    ],
    ids=range(8),
)
def test_what_is_no_frame(magnetar_module: Any, topic: str, said: bytes) -> None:
    with Peer(magnetar_module) as peer:
        heard = peer.opened(PRODUCER % topic).say(said + frame(FIN | CLOSE)).until_closed()
    assert bytes((FIN | CLOSE,)) in heard


def document(**fields: Any) -> bytes:
    return frame(FIN | TEXT, json.dumps(fields).encode())


BAD_IDS = ("", "*", "CAAQABgF", "CP///////////wEQ////////////ATD/////Bw==", "A" * 100_000)


@pytest.mark.parametrize("message_id", BAD_IDS, ids=range(len(BAD_IDS)))
def test_ids_that_are_none(magnetar_module: Any, topic: str, message_id: str) -> None:
    with Peer(magnetar_module) as peer:
        said = document(messageId=message_id) + document(type="permit", permitMessages=1 << 70)
        heard = peer.opened(CONSUMER % topic).say(said).until_closed()
    assert bytes((FIN | CLOSE,)) in heard


def test_messages_that_are_none_are_refused_one_by_one(magnetar_module: Any, topic: str) -> None:
    deep = b"[" * 100_000
    wrong = [
        frame(FIN | TEXT, deep),
        document(payload="YQ==", properties={"a": [1]}),
        document(payload="YQ==", deliverAt=1 << 100, eventTime="9999-99-99"),
        document(payload="*"),
        document(payload="YQ==", key="k" * 1_000_000, replicationClusters=["\x00"] * 1_000),
    ]
    with Peer(magnetar_module) as peer:
        peer.opened(PRODUCER % topic).say(b"".join(wrong))
        peer.say(document(payload=base64.b64encode(b"good").decode(), context="last"))
        heard = b""
        while b'"context":"last"' not in heard:
            heard += peer.socket.recv(65_536)
    assert heard.count(b"send-error") == len(wrong) - 1


def test_hundreds_that_say_nothing_or_half(magnetar_module: Any, topic: str) -> None:
    """They cost what they hold, and go with their sockets."""
    with ExitStack() as stack:
        for number in range(200):
            peer = stack.enter_context(Peer(magnetar_module))
            if number % 2:
                peer.say(b"GET /ws/v2/producer/")
            else:
                peer.opened(PRODUCER % topic).say(frame(TEXT, b"x" * 10_000))


def test_halves_of_long_messages_go_with_their_sockets(magnetar_module: Any, topic: str) -> None:
    """The fixture of the bystander sees what would be left of them."""
    stats = f"{magnetar_module.http_url}/admin/v2/persistent/public/default/{topic}/stats"
    for _ in range(2):
        with ExitStack() as stack:
            for _ in range(60):
                peer = stack.enter_context(Peer(magnetar_module)).opened(PRODUCER % topic)
                peer.socket.setblocking(False)
                with suppress(BlockingIOError):
                    peer.socket.sendall(frame(TEXT, b"x" * 6_000_000))
        until(lambda: not httpx.get(stats).json()["publishers"], seconds=60)
