"""Who comes in, and what happens where the system has no room for one more."""

import resource
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from magnetar.core.kernel.complaints import Complaints
from magnetar.core.link.acceptor import Acceptor
from magnetar.core.link.front import Door, Listener
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.readiness.poller import READ, new_poller
from magnetar.core.testing.clock import FixedClock


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """For this process; those it has stay."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def never(connection: Any) -> Any:
    raise AssertionError("nobody speaks here")


def test_without_descriptors_a_listener_rests_until_it_is_woken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    poller = new_poller()
    accepting = Acceptor(poller, LinkLimits(), Complaints(FixedClock()))
    door = socket.create_server(("127.0.0.1", 0))
    fd = door.fileno()
    accepting.listen(Listener(Door("lines", door), never))
    with closing(poller), closing(socket.socket()) as client:
        with no_more_descriptors():
            client.connect(door.getsockname())
            for _ in range(3):
                assert poller.ready(0, 8) == [(fd, READ)]
                assert list(accepting.accept(fd)) == []
                assert poller.ready(0, 8) == [], "it would be ready for ever"
                accepting.wake()
        (accepted,) = accepting.accept(fd)
        accepted.socket.close()
        accepting.stop()
        assert fd not in accepting
    assert caplog.messages == [
        "lines: cannot accept, and tries again every second: [Errno 24] Too many open files",
        "lines: accepts again",
    ]


def test_a_connection_that_is_passed_on_is_refused_like_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    limits = LinkLimits(connections_max=0)
    door = socket.create_server(("127.0.0.1", 0))
    with closing(door), closing(new_poller()) as poller, closing(socket.socket()) as client:
        accepting = Acceptor(poller, limits, Complaints(FixedClock()))
        client.connect(door.getsockname())
        with closing(door.accept()[0]) as sock:
            assert "maximum of 0 connections" in accepting.adopted("lines", sock, never).refusal
    assert accepting.refused == 1
    assert caplog.messages == [
        "127.0.0.1: refused a connection: the server has its maximum of 0 connections"
    ]


def test_a_listener_may_stop_while_it_rests() -> None:
    poller = new_poller()
    accepting = Acceptor(poller, LinkLimits(), Complaints(FixedClock()))
    door = socket.create_server(("127.0.0.1", 0))
    accepting.listen(Listener(Door("lines", door), never))
    with closing(poller), closing(socket.socket()) as client:
        with no_more_descriptors():
            client.connect(door.getsockname())
            assert list(accepting.accept(door.fileno())) == []
        accepting.stop()
        accepting.wake()
        assert poller.ready(0, 8) == []
        assert door.fileno() == -1
