"""Which sockets are ready: level-triggered, for no longer than they are watched."""

import select
import socket
import sys
from collections.abc import Iterator

import pytest

from magnetar.core.link.readiness import poller as poller_module
from magnetar.core.link.readiness.poller import GONE, READ, WRITE, Poller, new_poller

Pair = tuple[socket.socket, socket.socket]
KINDS = [new_poller]
if sys.platform == "linux" and new_poller is not poller_module.EpollPoller:
    KINDS.append(poller_module.EpollPoller)  # the reference of the twin


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__module__.rpartition(".")[2])
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    made: Poller = request.param()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Our socket, and the peer's."""
    ours, peer = socket.socketpair()
    with ours, peer:
        yield ours, peer


def test_a_socket_is_readable_until_it_is_read(poller: Poller, pair: Pair) -> None:
    ours, peer = pair
    poller.watch(ours.fileno(), READ)
    assert poller.ready(0, 10) == []
    peer.send(b"ab")
    assert poller.ready(0, 10) == [(ours.fileno(), READ)]
    ours.recv(1)
    assert poller.ready(0, 10) == [(ours.fileno(), READ)], "there is more"
    ours.recv(1)
    assert poller.ready(0, 10) == []


def test_only_what_is_of_interest_is_told(poller: Poller, pair: Pair) -> None:
    ours, peer = pair
    peer.send(b"a")
    poller.watch(ours.fileno(), 0)
    assert poller.ready(0, 10) == []
    poller.change(ours.fileno(), WRITE)
    assert poller.ready(0, 10) == [(ours.fileno(), WRITE)]
    poller.change(ours.fileno(), READ | WRITE)
    results = {bit for _, bits in poller.ready(0, 10) for bit in (READ, WRITE) if bits & bit}
    assert results == {READ, WRITE}
    poller.change(ours.fileno(), 0)
    assert poller.ready(0, 10) == []


def test_a_forgotten_socket_may_be_watched_again(poller: Poller, pair: Pair) -> None:
    ours, peer = pair
    peer.send(b"a")
    poller.watch(ours.fileno(), READ)
    poller.forget(ours.fileno())
    assert poller.ready(0, 10) == []
    poller.watch(ours.fileno(), READ)
    assert poller.ready(0, 10) == [(ours.fileno(), READ)]


@pytest.mark.skipif(sys.platform != "linux", reason="only epoll tells it unasked")
def test_a_broken_socket_is_told_of_unasked(poller: Poller, pair: Pair) -> None:
    ours, peer = pair
    poller.watch(ours.fileno(), 0)
    peer.close()
    ((fd, bits),) = poller.ready(0, 10)
    assert fd == ours.fileno()
    assert bits & GONE


def test_no_more_are_told_than_asked_for_and_each_has_its_turn(poller: Poller) -> None:
    pairs = [socket.socketpair() for _ in range(4)]
    try:
        for ours, peer in pairs:
            poller.watch(ours.fileno(), READ)
            peer.send(b"a")
        results = [poller.ready(0, 2) for _ in range(2)]
        assert [len(each) for each in results] == [2, 2]
        if sys.platform == "linux":
            assert {fd for each in results for fd, _ in each} == {one.fileno() for one, _ in pairs}
    finally:
        for ours, peer in pairs:
            ours.close()
            peer.close()


def test_its_own_descriptor_is_readable_when_a_watched_one_is(poller: Poller, pair: Pair) -> None:
    """So that it nests in trio's."""
    ours, peer = pair
    poller.watch(ours.fileno(), READ)
    assert select.select([poller.fileno()], [], [], 0)[0] == []
    peer.send(b"a")
    assert select.select([poller.fileno()], [], [], 0)[0] == [poller.fileno()]
