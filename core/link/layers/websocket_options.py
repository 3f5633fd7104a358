"""What is served over WebSocket, and to whom. `websocket.py` itself is imported late."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

Permits = Callable[[str, str], bool]
"""Whether a page of an origin may connect, by `Origin` and `Host`."""


class WebSocketOptions(Struct, frozen=True):
    """What is served."""

    path: str
    subprotocols: tuple[str, ...]
    """Those of which a client has to offer one; the first that it offers is chosen."""
    permits: Permits = lambda _origin, _host: True
