"""Room for so many connections: who is served, who is refused, and that both end."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from magnetar.core.testing.bench import settled
from magnetar.wire.http.limits import connection_limit as module
from magnetar.wire.http.limits.connection_limit import REFUSAL, ConnectionLimit


def pair() -> tuple[trio.SocketStream, socket.socket]:
    """A connection: the server's side of it, and the client's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return trio.SocketStream(trio.socket.from_stdlib_socket(ours)), theirs


async def never(stream: trio.abc.Stream) -> None:
    await trio.sleep_forever()


@asynccontextmanager
async def full_room() -> AsyncIterator[tuple[ConnectionLimit, trio.Nursery]]:
    """A room for one, who is there."""
    room = ConnectionLimit(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.admit, object(), never)
        await settled()
        assert room.served == 1
        yield room, nursery
        nursery.cancel_scope.cancel()
    assert (room.served, room.refusing) == (0, 0)


async def test_a_place_is_given_back_whatever_happens() -> None:
    room = ConnectionLimit(1)

    async def fail(stream: trio.abc.Stream) -> None:
        raise RuntimeError("no")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            await room.admit(object(), fail)
    assert (room.served, room.refused) == (0, 0)


async def test_one_too_many_hears_why() -> None:
    async with full_room() as (room, nursery):
        stream, client = pair()
        with client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            nursery.start_soon(room.admit, stream, never)
            await settled()
            assert (room.refusing, room.refused) == (1, 1)
            assert client.recv(10_000) == REFUSAL
            assert client.recv(1) == b"", "nothing more comes"
        await settled()
        assert room.refusing == 0
        assert stream.socket.fileno() == -1


async def test_one_that_does_not_go_is_cut_off(autojump_clock: object) -> None:
    async with full_room() as (room, _nursery):
        stream, client = pair()
        with client:
            begun = trio.current_time()
            await room.admit(stream, never)
            assert trio.current_time() - begun == pytest.approx(module.REFUSAL_SECONDS)
            assert stream.socket.fileno() == -1


async def test_one_that_talks_on_is_cut_off() -> None:
    async with full_room() as (room, _nursery):
        stream, client = pair()
        with client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * module.REFUSAL_BYTES_MAX)
            client.sendall(bytes(2 * module.REFUSAL_BYTES_MAX))
            await room.admit(stream, never)
            assert stream.socket.fileno() == -1


async def test_very_many_hear_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFUSING_MAX", 1)
    async with full_room() as (room, nursery):
        streams = [pair(), pair()]
        for stream, _client in streams:
            nursery.start_soon(room.admit, stream, never)
        await settled()
        received = sorted((client.recv(10_000) for _stream, client in streams), key=len)
        assert received == [b"", REFUSAL]
        for _stream, client in streams:
            client.close()
        await settled()


async def test_refusals_are_logged_but_not_each(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with full_room() as (room, _nursery):
        for seconds in (0, 0, module.LOG_SECONDS - 1, 1, 0):
            mock_clock.jump(seconds)
            await room.admit(object_to_close(), never)
    assert caplog.messages == [
        "refused 1 HTTP connections: there are already 1, the maximum",
        "refused 3 HTTP connections: there are already 1, the maximum",
    ]


def object_to_close() -> trio.testing.MemoryReceiveStream:
    """No socket stream, as over TLS: it hears nothing."""
    return trio.testing.MemoryReceiveStream()
