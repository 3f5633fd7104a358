"""One connection, over a real socket."""

import select
import socket
from contextlib import contextmanager

import pytest

from magnetar.bookie.reading import connection as connections
from magnetar.bookie.reading.connection import ReplicaConnection
from magnetar.core.kernel.errors import WireError


@contextmanager
def connected():
    """A connection, and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ReplicaConnection(*server.getsockname())
        try:
            with server.accept()[0] as peer:
                select.select([], [connection.socket], [], 20)
                assert connection.connected()
                yield connection, peer
        finally:
            connection.close()


def received(connection):
    """What the connection has received when it has received anything."""
    select.select([connection.socket], [], [], 20)
    return connection.receive()


def test_frames_out_and_in() -> None:
    with connected() as (connection, peer):
        connection.send(b"one")
        connection.send(b"")
        connection.write()
        assert not connection.wants_to_write
        assert peer.recv(100) == b"\0\0\0\3one\0\0\0\0"
        peer.sendall(b"\0\0\0\2ab\0\0\0\0\0\0\0\3c")
        assert received(connection) == [b"ab", b""]
        peer.sendall(b"de\0\0")
        assert received(connection) == [b"cde"]
        assert connection.receive() == []


@pytest.mark.parametrize("size", [0, 1, 5])
def test_one_byte_at_a_time(size: int) -> None:
    body = bytes(range(size))
    with connected() as (connection, peer):
        found = []
        for byte in size.to_bytes(4, "big") + body:
            assert found == []
            peer.sendall(bytes([byte]))
            found += received(connection)
        assert found == [body]


def test_what_the_socket_does_not_take_waits() -> None:
    body = bytes(4 * 1024 * 1024)
    with connected() as (connection, peer):
        connection.send(body)
        connection.write()
        assert connection.wants_to_write
        got = 0
        while got < len(body) + 4:
            connection.write()
            got += len(peer.recv(1 << 20))
        assert not connection.wants_to_write


def test_a_request_may_be_sent_before_the_connection_is_made() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ReplicaConnection(*server.getsockname())
        connection.send(b"one")
        select.select([], [connection.socket], [], 20)
        assert connection.connected()
        connection.write()
        with server.accept()[0] as peer:
            assert peer.recv(100) == b"\0\0\0\3one"
        connection.close()


def test_the_end_and_a_frame_that_is_too_large_are_errors() -> None:
    with connected() as (connection, peer):
        peer.close()
        with pytest.raises(ConnectionError, match="ended"):
            received(connection)
    with connected() as (connection, peer):
        peer.sendall((connections.FRAME_BYTES_MAX + 1).to_bytes(4, "big"))
        with pytest.raises(WireError, match="more than"):
            received(connection)


def test_the_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when `localhost` is ::1 first, and the bookie has 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", one.getsockname())
            for one in (closed, server)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        connection = ReplicaConnection("localhost", 1)
        for expected in (False, True):
            select.select([], [connection.socket], [], 20)
            assert connection.connected() is expected
        connection.close()


def test_so_it_is_if_one_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ::1 on a machine without IPv6."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        no_port = ("255.255.255.255", 1)  # of a broadcast, which TCP refuses
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", one)
            for one in (no_port, no_port, server.getsockname())
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        connection = ReplicaConnection("localhost", 1)
        select.select([], [connection.socket], [], 20)
        assert connection.connected()
        connection.close()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found[:2])
        with pytest.raises(OSError, match="unreachable"):
            ReplicaConnection("localhost", 1)


def test_a_refused_connection_is_an_error() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        connection = ReplicaConnection(*closed.getsockname())
        select.select([], [connection.socket], [], 20)
        with pytest.raises(ConnectionRefusedError):
            connection.connected()
        connection.close()


@pytest.mark.parametrize(
    ("host", "port"), [("a..b", 3181), ("x" * 64, 3181), ("127.0.0.1", 70_000), ("127.0.0.1", -5)]
)
def test_what_is_no_address_is_a_bookie_that_cannot_be_reached(host: str, port: int) -> None:
    with pytest.raises(OSError, match=f"{host}:{port} is no address"):
        ReplicaConnection(host, port)
