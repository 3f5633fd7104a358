"""Sockets that only wait to be closed, on pairs of sockets and with the time given."""

import select
import socket
from collections.abc import Iterator

import pytest

from magnetar.core.link.linger import RECEIVE_BYTES, Lingering
from magnetar.core.link.readiness.poller import READ, Poller, new_poller


@pytest.fixture
def poller() -> Iterator[Poller]:
    made = new_poller()
    yield made
    made.close()


@pytest.fixture
def lingering(poller: Poller) -> Iterator[Lingering]:
    made = Lingering(poller, memoryview(bytearray(4 * RECEIVE_BYTES)))
    yield made
    made.close()


class Pair:
    """Our socket, watched as a connection's is, and the peer's."""

    def __init__(self, poller: Poller) -> None:
        self.ours, self.peer = socket.socketpair()
        self.ours.setblocking(False)
        self.peer.settimeout(5)
        self.fd = self.ours.fileno()
        poller.watch(self.fd, 0)

    @property
    def closed(self) -> bool:
        return self.ours.fileno() < 0


@pytest.fixture
def pair(poller: Poller) -> Iterator[Pair]:
    made = Pair(poller)
    yield made
    made.peer.close()


def test_the_peer_hears_the_end_and_may_go_on_talking(
    lingering: Lingering, poller: Poller, pair: Pair
) -> None:
    pair.ours.send(b"last word")
    lingering.begin(pair.ours, 10.0)
    assert pair.peer.recv(100) == b"last word"
    assert pair.peer.recv(100) == b""
    pair.peer.send(b"but")
    assert poller.ready(0, 10) == [(pair.fd, READ)]
    lingering.receive(pair.fd)
    assert poller.ready(0, 10) == [], "it is read, and forgotten"
    assert not pair.closed


def test_it_closes_with_the_peer(lingering: Lingering, pair: Pair) -> None:
    lingering.begin(pair.ours, 10.0)
    pair.peer.send(b"bye")
    pair.peer.close()
    lingering.receive(pair.fd)
    assert not pair.closed
    lingering.receive(pair.fd)
    assert pair.closed
    assert not lingering


def test_nothing_to_receive_is_no_end(lingering: Lingering, pair: Pair) -> None:
    lingering.begin(pair.ours, 10.0)
    lingering.receive(pair.fd)
    assert not pair.closed


def test_a_descriptor_it_does_not_know_is_none_of_its_business(
    lingering: Lingering, pair: Pair
) -> None:
    lingering.receive(pair.fd)
    assert not pair.closed
    pair.ours.close()


def test_time_ends_it(lingering: Lingering, poller: Poller) -> None:
    early, late = Pair(poller), Pair(poller)
    lingering.begin(early.ours, 10.0)
    lingering.begin(late.ours, 11.0)
    lingering.close_overdue(9.9)
    assert (early.closed, late.closed) == (False, False)
    lingering.close_overdue(10.0)
    assert (early.closed, late.closed) == (True, False)
    lingering.close()
    assert late.closed
    early.peer.close()
    late.peer.close()


def test_a_peer_that_has_gone_is_not_waited_for(lingering: Lingering, poller: Poller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        peer = socket.create_connection(door.getsockname())
        ours, _ = door.accept()
    ours.setblocking(False)
    poller.watch(ours.fileno(), 0)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset it
    peer.close()
    assert select.select([ours], [], [], 5)[0]
    lingering.begin(ours, 10.0)
    assert ours.fileno() < 0
    assert not lingering
