"""Answers that are sent before the body of their request has come."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from starlette.responses import PlainTextResponse

from magnetar.wire.http.server.unread_body import REST_BYTES_MAX, REST_SECONDS_MAX, UnreadBody

LENGTH = (b"content-length", b"7")
PIECE = bytes(REST_BYTES_MAX // 4)


class Client:
    """Sends a body in pieces, and hears the answer."""

    def __init__(self, *pieces: bytes, more: bool = False) -> None:
        self.pieces = list(pieces)
        self._more = more
        """Whether the last piece is not the end."""
        self.headers: dict[bytes, bytes] | None = None
        self.body = b""
        self.left_at_answer = self.left_at_end = 0

    async def receive(self) -> Any:
        if not self.pieces:
            await trio.sleep_forever()
        piece = self.pieces.pop(0)
        more = self._more or bool(self.pieces)
        return {"type": "http.request", "body": piece, "more_body": more}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.headers = dict(message["headers"])
            self.left_at_answer = len(self.pieces)
        else:
            self.body += message["body"]
            self.left_at_end = len(self.pieces)

    async def asks(self, *headers: tuple[bytes, bytes]) -> bytes | None:
        """What the answer says of the connection."""
        scope = {"type": "http", "headers": [*headers]}
        await UnreadBody(PlainTextResponse("no"))(scope, self.receive, self.send)
        assert self.headers is not None
        return self.headers.get(b"connection")


@pytest.mark.parametrize("header", [LENGTH, (b"transfer-encoding", b"chunked")])
async def test_the_rest_is_read_first(header: tuple[bytes, bytes]) -> None:
    client = Client(b"abc", b"defg", b"")
    assert await client.asks(header) is None
    assert client.left_at_answer == 0


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"0")]])
async def test_nothing_is_awaited_without_a_body(headers: list[tuple[bytes, bytes]]) -> None:
    with trio.fail_after(REST_SECONDS_MAX / 2):
        assert await Client().asks(*headers) is None


async def test_a_long_rest_ends_the_connection() -> None:
    client = Client(*[PIECE] * 100)
    assert await client.asks(LENGTH) == b"close"
    assert client.left_at_answer == 96
    assert (client.body, client.left_at_end) == (b"no", 0)


async def test_so_does_one_that_does_not_come(autojump_clock: trio.testing.MockClock) -> None:
    assert await Client(b"abc", more=True).asks(LENGTH) == b"close"
    assert trio.current_time() == pytest.approx(2 * REST_SECONDS_MAX, abs=0.1)
