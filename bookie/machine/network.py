"""The network on this system: TCP, without a task or a lock for each send.

In a server its loop receives, with all other sockets: in trio alone nothing would be received while
the loop waits a moment for its clients (`core/link/loop.py`), and each answer would cost a turn.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Final

import trio

from magnetar.bookie.machine.addresses import resolving
from magnetar.core.ports.network import ReadableLoop

RECEIVES_PER_SWEEP: Final = 8
"""Of 256 KiB each: half a millisecond for what a bookie sends."""


class SystemConnection:
    """One TCP connection."""

    def __init__(self, connected: socket.socket, loop: ReadableLoop | None) -> None:
        self._socket = connected
        self._loop = loop
        self._end: Callable[[], None] = _nothing
        """Has the loop receive no more."""

    def send_at_once(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def wait_sendable(self) -> None:
        try:
            await trio.lowlevel.wait_writable(self._socket)
        except (trio.ClosedResourceError, ValueError) as error:
            raise OSError(errno.EBADF, "the connection was closed") from error

    async def deliver(self, size_max: int, take: Callable[[bytes], None]) -> None:
        if self._loop is not None:
            await self._deliver_in_sweeps(self._loop, size_max, take)
            return
        while data := await self._receive(size_max):
            take(data)

    async def _receive(self, size_max: int) -> bytes:
        while True:
            try:
                return self._socket.recv(size_max)
            except BlockingIOError:
                pass
            try:
                await trio.lowlevel.wait_readable(self._socket)
            except (trio.ClosedResourceError, ValueError) as error:
                raise OSError(errno.EBADF, "the connection was closed") from error

    def _take_some(self, size_max: int, take: Callable[[bytes], None]) -> bool:
        """Receive what is there, in a sweep; whether the peer has closed the connection."""
        for _ in range(RECEIVES_PER_SWEEP):
            try:
                data = self._socket.recv(size_max)
            except BlockingIOError:
                return False
            if not data:
                return True
            take(data)
            if len(data) < size_max:
                return False
        return False

    async def _deliver_in_sweeps(
        self, loop: ReadableLoop, size_max: int, take: Callable[[bytes], None]
    ) -> None:
        fd = self._socket.fileno()
        ended = trio.Event()
        failure: Exception | None = None

        def end() -> None:
            if not ended.is_set():
                ended.set()
                loop.unwatch_server(fd)

        def receive() -> None:
            nonlocal failure
            try:
                if self._take_some(size_max, take):
                    end()
            except Exception as error:  # noqa: BLE001  # raised to who awaits this
                failure = error
                end()

        self._end = end
        loop.watch_server(fd, receive)
        try:
            await ended.wait()
        finally:
            end()
        if failure is not None:
            raise failure
        if self._socket.fileno() < 0:
            raise OSError(errno.EBADF, "the connection was closed")

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._end()
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()


def _nothing() -> None:
    """Nothing is received by the loop."""


class SystemNetwork:
    """A `Network` of TCP connections; `loop` receives if there is one."""

    def __init__(self, loop: ReadableLoop | None = None) -> None:
        self._loop = loop

    async def connect(self, host: str, port: int) -> SystemConnection:
        with resolving(host, port):
            opened = await trio.open_tcp_stream(host, port)
        try:
            connected = socket.socket(fileno=socket.dup(opened.socket.fileno()))
        finally:
            opened.socket.close()  # not `aclose`: who is cancelled there would leave the copy open
        connected.setblocking(False)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return SystemConnection(connected, self._loop)
