"""The network, as a port: connections to servers, so that a simulator can replace it.

A connection ends with `OSError` from any of its calls, or when `deliver` returns: then its peer has
closed it. One task at most has things delivered, and one waits for room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ReadableLoop(Protocol):
    """A server's loop, which makes calls when descriptors are readable."""

    def watch_server(self, fd: int, call: Callable[[], None]) -> None:
        """Make a call in a sweep whenever `fd` is readable, and perhaps when it is not."""
        ...

    def unwatch_server(self, fd: int) -> None:
        """Make it no more; `fd` is still open."""
        ...


class NetworkConnection(Protocol):
    """One connection to a server."""

    def send_at_once(self, data: bytes | memoryview) -> int:
        """Send what the system takes now; returns the number of bytes, perhaps 0. Plain call."""
        ...

    async def wait_sendable(self) -> None:
        """Wait until the system takes more."""
        ...

    async def deliver(self, size_max: int, take: Callable[[bytes], None]) -> None:
        """Call `take` with what comes, `size_max` bytes at most at a time, until the end. What it
        raises ends that.
        """
        ...

    def close(self) -> None:
        """End it. Calls that wait raise `OSError`."""
        ...


class Network(Protocol):
    """Makes connections."""

    async def connect(self, host: str, port: int) -> NetworkConnection:
        """A connection to a server; `OSError` if there is none."""
        ...
