"""Both twins: what comes, in which pieces, into how much room."""

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.link.gathering import Gathering, GatheringNow

TWINS = list(dict.fromkeys([Gathering, GatheringNow]))
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture(params=TWINS, ids=lambda twin: twin.__module__)
def twin(request: pytest.FixtureRequest) -> type[Gathering]:
    return request.param


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


@given(
    begin=st.binary(max_size=50),
    pieces=st.lists(st.binary(min_size=1, max_size=3000), max_size=6),
    rooms=st.lists(st.integers(1, 4000), min_size=6, max_size=6),
)
def test_all_that_comes_is_there_in_order(
    begin: bytes, pieces: list[bytes], rooms: list[int]
) -> None:
    for twin in TWINS:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            large, come = twin(begin, len(begin) + rooms[0]), begin
            for piece, room in zip(pieces, rooms, strict=False):
                large.grow(large.room + room)
                theirs.sendall(piece)
                count = large.receive(ours.fileno())
                assert count == min(len(piece), large.room - len(come))
                come += piece[:count]
                assert large.filled == len(come)
                with suppress(BlockingIOError):
                    ours.recv(1 << 20, socket.MSG_DONTWAIT)  # what did not fit
            whole = large.whole()
            assert whole == come
            assert type(whole) is bytes


def test_nothing_has_come(twin: type[Gathering], pair: Pair) -> None:
    large = twin(b"begin", 100)
    with pytest.raises(BlockingIOError):
        large.receive(pair[0].fileno())
    assert large.filled == 5


def test_the_peer_has_closed(twin: type[Gathering], pair: Pair) -> None:
    pair[1].close()
    assert twin(b"", 100).receive(pair[0].fileno()) == 0


def test_no_such_descriptor(twin: type[Gathering]) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        twin(b"", 100).receive(-1)


def test_what_was_handed_on_is_not_written_again(twin: type[Gathering], pair: Pair) -> None:
    large = twin(b"begin", 100)
    whole = large.whole()
    assert (large.filled, large.room) == (0, 0)
    pair[1].sendall(b"more")
    if twin is not Gathering:
        for again in (large.whole, lambda: large.receive(pair[0].fileno())):
            with pytest.raises(ValueError, match="whole"):
                again()
    assert whole == b"begin"
