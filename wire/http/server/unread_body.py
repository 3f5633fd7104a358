"""The rest of a request's body is read before its answer is sent.

Many requests are answered before their body is looked at: what they ask for is not there, or not
theirs. A connection can take its next request only behind the body of this one; a server that
closes it instead may have the answer destroyed, because bytes that arrive at a closed socket reset
the connection (RFC 9112 9.6), and a client that reuses it fails with its next request.

Invariant: an answer waits for at most `REST_BYTES_MAX` and `REST_SECONDS_MAX`. Beyond them the
connection ends with the answer, which says so; what comes for another `REST_SECONDS_MAX` is thrown
away, so that a client that still sends can get it.
"""

from __future__ import annotations

from math import inf
from typing import Final

import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REST_BYTES_MAX: Final = 1024 * 1024
REST_SECONDS_MAX: Final = 1.0
TOO_LATE: Final = 408
"""The status of a request whose body was waited for already."""
CLOSE: Final = (b"connection", b"close")
LAST: Final = {"type": "http.response.body", "body": b""}


class UnreadBody:
    """An application whose requests are read to their ends."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _has_body(scope):
            body = _RequestBody(receive, send)
            receive, send = body.receive, body.send
        await self._app(scope, receive, send)


class _RequestBody:
    """The body of one request, and how far it was read."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._ended = False
        self._seconds_max = REST_SECONDS_MAX

    async def receive(self) -> Message:
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if self._ended:
            pass
        elif message["type"] == "http.response.start":
            if message["status"] == TOO_LATE:
                self._seconds_max = 0.0
            await self._read_rest(REST_BYTES_MAX)
            if not self._ended:
                message = {**message, "headers": [*message["headers"], CLOSE]}
        elif not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._read_rest(inf)
            message = LAST  # closes the connection
        await self._send(message)

    async def _read_rest(self, bytes_max: float) -> None:
        """Read to the end, if it comes soon enough."""
        size = 0
        with trio.move_on_after(self._seconds_max):
            while not self._ended and size < bytes_max:
                size += len((await self.receive()).get("body", b""))


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
