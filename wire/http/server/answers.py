"""Memory for large answers: an answer that does not fit becomes a 503, and its client may retry.

Invariant: an answer's memory is released when its client has received it or has disconnected.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from magnetar.wire.http.limits.memory import FREE_BYTES, NO_ROOM, Memory
from magnetar.wire.http.routes import refusal


class Bounded:
    """An application whose large answers are counted against a memory limit."""

    def __init__(self, app: ASGIApp, memory: Memory) -> None:
        self._app = app
        self._answers = memory.answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken, refused = 0, False

        async def counted(message: Message) -> None:
            nonlocal taken, refused
            if message["type"] == "http.response.start":
                size = _length(message["headers"])
                if size > FREE_BYTES:
                    refused = not self._answers.take(size)
                    taken = 0 if refused else size
            if not refused:
                await send(message)  # returns when the client has received it

        try:
            await self._app(scope, receive, counted)
        finally:
            self._answers.give_back(taken)
        if refused:
            await refusal(503, NO_ROOM)(scope, receive, send)


def _length(headers: list[tuple[bytes, bytes]]) -> int:
    for name, value in headers:
        if name == b"content-length":
            return int(value)
    return 0
