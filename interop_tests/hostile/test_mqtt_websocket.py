"""Frames of WebSocket that are wrong, without end, or too many, at the port of MQTT."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from struct import pack
from typing import Any, Self

import pytest

import magnetar
from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.mqtt_peer import Watch, address
from interop_tests.hostile.test_memory import BUDGET
from magnetar.wire.mqtt.tests import peer

SECONDS = 20.0
HEAD = (
    b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN = 0x80
PROTOCOL_ERROR, UNSUPPORTED = 1002, 1003


def frame(
    first: int, payload: bytes = b"", *, size: int | None = None, masked: bool = True
) -> bytes:
    """A frame whose mask is zeros; `size` is what it announces."""
    size = len(payload) if size is None else size
    mask = 0x80 if masked else 0
    if size < 126:
        head = bytes((first, mask | size))
    elif size < 65_536:
        head = bytes((first, mask | 126)) + pack(">H", size)
    else:
        head = bytes((first, mask | 127)) + pack(">Q", size)
    return head + (bytes(4) if masked else b"") + payload


class Page:
    """A peer whose handshake is done."""

    def __init__(self, server: Any, *, receive_bytes: int = 0) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(SECONDS)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(address(server.mqtt_ws_url))
        self.socket.sendall(HEAD)
        self._heard = b""
        while b"\r\n\r\n" not in self._heard:
            self._heard += self.socket.recv(4096)
        assert self._heard.startswith(b"HTTP/1.1 101 ")
        self._heard = self._heard.partition(b"\r\n\r\n")[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, data: bytes) -> Self:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)
        return self

    def try_to_say(self, data: bytes, seconds: float = 0.1) -> None:
        self.socket.settimeout(seconds)
        with suppress(OSError):
            self.socket.sendall(data)
        self.socket.settimeout(SECONDS)

    def frames(self, count: int = 1_000_000) -> list[tuple[int, bytes]]:
        """So many frames of the server, or all until it closes: first byte and payload."""
        found: list[tuple[int, bytes]] = []
        while len(found) < count:
            heard = self._heard
            size, at = (heard[1], 2) if len(heard) > 1 else (0, 2)
            if size == 126 and len(heard) >= 4:
                size, at = int.from_bytes(heard[2:4]), 4
            if len(heard) >= at + size and len(heard) > 1:
                found.append((heard[0], heard[at : at + size]))
                self._heard = heard[at + size :]
                continue
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                return found
            if not data:
                return found
            self._heard += data
        return found


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def page(magnetar_module) -> Iterator[Page]:
    with Page(magnetar_module) as made:
        yield made


CONNECT = peer.connect("page", version=peer.V5)
WRONG = {
    "unmasked": (PROTOCOL_ERROR, frame(FIN | BINARY, CONNECT, masked=False)),
    "reserved bit": (PROTOCOL_ERROR, frame(FIN | 0x40 | BINARY, CONNECT)),
    "reserved opcode": (PROTOCOL_ERROR, frame(FIN | 3, CONNECT)),
    "text": (UNSUPPORTED, frame(FIN | TEXT, b"hello")),
    "continuation of nothing": (PROTOCOL_ERROR, frame(FIN | CONTINUATION, CONNECT)),
    "a message within a message": (
        PROTOCOL_ERROR,
        frame(BINARY, CONNECT[:3]) + frame(BINARY, CONNECT[3:]),
    ),
    "a ping in parts": (PROTOCOL_ERROR, frame(PING, b"x")),
    "a large ping": (PROTOCOL_ERROR, frame(FIN | PING, b"x" * 126)),
    "a size beyond 63 bits": (PROTOCOL_ERROR, frame(FIN | BINARY, size=2**63)),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_reason_is_in_the_close_frame(page, bystander, what):
    code, words = WRONG[what]
    first, payload = page.say(words).frames()[-1]
    assert (first, payload[:2]) == (FIN | CLOSE, pack(">H", code))
    bystander.works()


def test_packets_in_frames_of_a_byte(page, bystander):
    """Packets need not be whole in a frame [MQTT-6.0.0-2]."""
    words = CONNECT + peer.PINGREQ
    for place, byte in enumerate(words):
        first = CONTINUATION if place else BINARY
        page.say(frame(first, bytes((byte,))) + frame(CONTINUATION) + frame(FIN | PONG))
    kinds: list[str] = []
    while len(kinds) < 2:
        ((_, payload),) = page.frames(1)
        kinds += [one.kind for one in peer.parse([payload], peer.V5)]
    assert kinds == ["CONNACK", "PINGRESP"]
    bystander.works()


def test_mqtt_that_is_wrong(page, bystander):
    page.say(frame(FIN | BINARY, CONNECT)).frames(1)
    frames = page.say(frame(FIN | BINARY, b"\x30\x05\0\3\xff\xfe\xfd")).frames()
    assert frames[-2][1].endswith(b"\xe0\x01\x81")
    assert frames[-1] == (FIN | CLOSE, pack(">H", PROTOCOL_ERROR))
    bystander.works()


FLOODS = {
    "a frame of 2^62 bytes": frame(FIN | BINARY, CONNECT, size=2**62)
    + b"\x30\xff\xff\xff\x7f"
    + bytes(MIB),
    "a message without end": frame(BINARY, CONNECT) + frame(CONTINUATION, peer.PINGREQ) * 20_000,
    "empty frames": frame(BINARY, CONNECT) + frame(CONTINUATION) * 100_000,
    "pings": frame(FIN | PING, b"x" * 125) * 8_000,
    "pongs": frame(FIN | PONG, b"x" * 125) * 8_000,
    "half a CONNECT": frame(FIN | BINARY, b"\x10\xff\xff\x0f" + bytes(200_000)),
}


@pytest.mark.parametrize("what", FLOODS)
def test_floods_of_who_never_reads(stack, what):
    """Again and again, by fifty peers."""
    server = stack.enter_context(magnetar.standalone())
    watch = Watch(server, stack)
    pages = [stack.enter_context(Page(server, receive_bytes=4096)) for _ in range(50)]
    for _ in range(4):
        for one in pages:
            one.try_to_say(FLOODS[what], 0.02)
        watch.look()
    watch.judge(BUDGET)
