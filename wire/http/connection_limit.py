"""How many HTTP connections are served at a time, and what those beyond hear.

A connection too many is answered 503 and closed at once, so that its client (a monitor, a load
balancer) knows what is the matter and is not left in a queue behind silent ones. It is not read
from, so a refusal costs next to nothing; over TLS a word would cost a handshake, so there the
connection is just closed, and so is everyone while very many are being refused.

Who runs the server reads of it in the log: of the first one at once, of more once in a while.

Invariant: at most so many connections are served, and at most so many are being refused.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final

import msgspec
import trio

log = logging.getLogger(__name__)

REASON: Final = "this server has as many HTTP connections as it may: try again"
REFUSING_MAX: Final = 100
"""Being refused at the same time."""
REFUSAL_SECONDS: Final = 2.0
"""For a client to take its refusal."""
REFUSAL_BYTES_MAX: Final = 64 * 1024
"""Of what it has sent that are thrown away: closed over unread bytes, a socket takes the refusal
back."""

LOG_SECONDS: Final = 10.0
"""Between two lines of the log about it."""

_BODY: Final = msgspec.json.encode({"reason": REASON})
REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


class ConnectionLimit:
    """For so many connections. See the module's docstring."""

    __slots__ = ("_count_max", "_logged", "_logged_at", "refused", "refusing", "served")

    def __init__(self, count_max: int = 1_000) -> None:
        self._count_max = count_max
        self.served = self.refusing = 0
        """Just now."""
        self.refused = 0
        """Since the start."""
        self._logged = 0
        """Of them, when it was last logged."""
        self._logged_at = -inf

    async def admit(self, stream: Any, serve: Callable[[Any], Awaitable[None]]) -> None:
        """Serve a connection if there is room for it; whatever happens it is closed in the end."""
        if self.served < self._count_max:
            self.served += 1
            try:
                await serve(stream)
            finally:
                self.served -= 1
            return
        self.refused += 1
        self._log()
        if self.refusing < REFUSING_MAX and isinstance(stream, trio.SocketStream):
            self.refusing += 1
            try:
                await _refuse(stream)
            finally:
                self.refusing -= 1
        await trio.aclose_forcefully(stream)

    def _log(self) -> None:
        now = trio.current_time()
        if now - self._logged_at < LOG_SECONDS:
            return
        count, self._logged, self._logged_at = self.refused - self._logged, self.refused, now
        text = "refused %d HTTP connections: there are %d, as many as there may be"
        log.warning(text, count, self._count_max)


async def _refuse(stream: trio.SocketStream) -> None:
    with trio.move_on_after(REFUSAL_SECONDS):
        try:
            await stream.send_all(REFUSAL)
            await stream.send_eof()
            left = REFUSAL_BYTES_MAX
            while left > 0 and (heard := await stream.receive_some(4096)):
                left -= len(heard)
        except trio.BrokenResourceError:
            pass  # it has gone by itself
