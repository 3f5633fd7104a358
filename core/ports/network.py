"""The network, as a port: connections to servers, so that a simulator can replace it.

A connection ends with `OSError` from any of its calls, or with an empty receive: then its peer has
closed it. One task at most receives, and one waits for room.
"""

from __future__ import annotations

from typing import Protocol


class NetworkConnection(Protocol):
    """One connection to a server."""

    def send_at_once(self, data: bytes | memoryview) -> int:
        """Send what the system takes now; returns the number of bytes, perhaps 0. Plain call."""
        ...

    async def wait_sendable(self) -> None:
        """Wait until the system takes more."""
        ...

    async def receive(self, size_max: int) -> bytes:
        """What has come, `size_max` bytes at most; nothing after the end."""
        ...

    def close(self) -> None:
        """End it. Calls that wait raise `OSError`."""
        ...


class Network(Protocol):
    """Makes connections."""

    async def connect(self, host: str, port: int) -> NetworkConnection:
        """A connection to a server; `OSError` if there is none."""
        ...
