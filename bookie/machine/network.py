"""The network on this system: TCP, without a task or a lock for each send."""

from __future__ import annotations

import errno
import socket

import trio


class SystemConnection:
    """One TCP connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

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

    async def receive(self, size_max: int) -> bytes:
        while True:
            try:
                return self._socket.recv(size_max)
            except BlockingIOError:
                pass
            try:
                await trio.lowlevel.wait_readable(self._socket)
            except (trio.ClosedResourceError, ValueError) as error:
                raise OSError(errno.EBADF, "the connection was closed") from error

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()


class SystemNetwork:
    """A `Network` of TCP connections."""

    async def connect(self, host: str, port: int) -> SystemConnection:
        async with await trio.open_tcp_stream(host, port) as stream:
            connected = socket.socket(fileno=socket.dup(stream.socket.fileno()))
        connected.setblocking(False)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return SystemConnection(connected)
