"""Both twins: what comes in, in which pieces, and what the errors are."""

import socket
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.link import sockets
from magnetar.core.native import PURE_WANTED

SIZE = 512 * 1024
SMALL = 64 * 1024
"""Up to here the compiled twin copies once more."""
Receive = Callable[[int, bytes, memoryview, int], bytes]
Send = Callable[[int, bytes], int]


def twins(name: str) -> list[Callable[..., object]]:
    found = [getattr(sockets, f"py_{name}")]
    if not PURE_WANTED and getattr(sockets, name) is not found[0]:
        found.append(getattr(sockets, name))
    return found


@pytest.fixture(params=twins("receive"), ids=lambda twin: twin.__module__)
def receive(request: pytest.FixtureRequest) -> Receive:
    return request.param


@pytest.fixture(params=twins("send"), ids=lambda twin: twin.__module__)
def send(request: pytest.FixtureRequest) -> Send:
    return request.param


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    for one in (ours, theirs):
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * SIZE)
    yield ours, theirs
    ours.close()
    theirs.close()


SIZES = st.one_of(
    st.integers(1, 300),
    st.sampled_from([SMALL - 1, SMALL, SMALL + 1, 2 * SMALL]),
)


@given(
    pieces=st.lists(SIZES, min_size=1, max_size=4),
    left=SIZES,
    size=st.sampled_from([4096, SMALL - 1, SMALL, SMALL + 1, SIZE]),
)
def test_everything_comes_once_and_in_order(pieces: list[int], left: int, size: int) -> None:
    scratch = memoryview(bytearray(SIZE))
    for receive in twins("receive"):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * SIZE)
            sent = b"".join(bytes([place + 1]) * piece for place, piece in enumerate(pieces))
            theirs.sendall(sent)
            kept = b"L" * left
            while len(kept) < left + len(sent):
                more = receive(ours.fileno(), kept, scratch, size)
                assert isinstance(more, bytes)
                assert 0 < len(more) - len(kept) <= size
                kept = more
            assert kept == b"L" * left + sent


def test_nothing_has_come(receive: Receive, pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(BlockingIOError):
        receive(pair[0].fileno(), b"left", memoryview(bytearray(8)), 8)


def test_the_peer_has_closed(receive: Receive, pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].close()
    assert receive(pair[0].fileno(), b"left", memoryview(bytearray(8)), 8) == b"left"


def test_no_such_descriptor(receive: Receive, send: Send) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        receive(-1, b"", memoryview(bytearray(8)), 8)
    with pytest.raises(OSError, match="Bad file descriptor"):
        send(-1, b"x")


def test_sending_until_the_system_takes_no_more(
    send: Send, pair: tuple[socket.socket, socket.socket]
) -> None:
    data = bytes(8 * SIZE)
    taken = send(pair[0].fileno(), data)
    assert 0 < taken < len(data)
    with pytest.raises(BlockingIOError):
        send_for_ever(send, pair[0].fileno(), data)


def send_for_ever(send: Send, fd: int, data: bytes) -> None:
    while True:
        send(fd, data)


def test_sending_to_nobody(send: Send, pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].close()
    with pytest.raises(BrokenPipeError):
        send(pair[0].fileno(), b"x")
