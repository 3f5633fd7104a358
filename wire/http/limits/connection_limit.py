"""The limit of HTTP connections served at a time, and the refusal of those beyond it.

A connection beyond the limit gets a 503 and is closed at once, so that its client (a monitor, a
load balancer) knows the reason and does not wait in a queue behind silent ones. The request is not
read, so a refusal costs next to nothing. Over TLS an answer would cost a handshake, so there the
connection is just closed; so are all connections while very many are being refused.

The log reports the first refusal at once, and further ones at intervals.

Invariant: the numbers of connections being served, and being refused, are limited.
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
"""Connections being refused at the same time."""
REFUSAL_SECONDS: Final = 2.0
"""Time for a client to read its refusal."""
REFUSAL_BYTES_MAX: Final = 64 * 1024
"""How much of a request is read and discarded: closing a socket with unread bytes resets the
connection, and the client may lose the refusal."""

LOG_SECONDS: Final = 10.0
"""Time between two log lines about refusals."""

_BODY: Final = msgspec.json.encode({"reason": REASON})
REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


class ConnectionLimit:
    """A limit of `count_max` connections. See the module's docstring."""

    __slots__ = ("_count_max", "_logged", "_logged_at", "refused", "refusing", "served")

    def __init__(self, count_max: int = 1_000) -> None:
        self._count_max = count_max
        self.served = self.refusing = 0
        """Current numbers of connections."""
        self.refused = 0
        """Connections refused since the start."""
        self._logged = 0
        """The value of `refused` at the last log line."""
        self._logged_at = -inf

    async def admit(self, stream: Any, serve: Callable[[Any], Awaitable[None]]) -> None:
        """Serve a connection below the limit, refuse any other, and close it afterwards."""
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
        text = "refused %d HTTP connections: there are already %d, the maximum"
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
            pass  # the client has disconnected
