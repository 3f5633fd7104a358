"""Both twins: what comes, in which pieces, into how much room."""

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.link.large_frame import LargeFrame, new_large_frame

TWINS = list(dict.fromkeys([LargeFrame, new_large_frame]))
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture(params=TWINS, ids=lambda twin: twin.__module__)
def twin(request: pytest.FixtureRequest) -> type[LargeFrame]:
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


@given(st.binary(max_size=500), st.data())
def test_what_was_left_free_is_filled_once(come: bytes, data: st.DataObject) -> None:
    skipped = data.draw(st.integers(0, len(come)))
    cut = data.draw(st.integers(0, len(come) - skipped))
    front = data.draw(st.binary(max_size=60))
    for twin in TWINS:
        large = twin(come, len(come) + 9, skipped, len(front))
        assert (large.filled, large.room, large.before) == (
            len(come) - skipped,
            len(come) + 9,
            len(front),
        )
        kept = come[skipped : len(come) - cut]
        assert large.cut(cut) == come[len(come) - cut :]
        seen = large.view()
        assert seen == kept
        assert seen.readonly
        assert large.view() == kept, "again"
        for wrong in (front + b"x", front[:-1] if front else b"xy"):
            with pytest.raises(ValueError, match="fill"):
                large.behind(wrong)
        assert large.behind(front) == front + kept
        assert seen == kept
        assert large.filled == 0


def test_what_comes_goes_behind_what_was_left_free(twin: type[LargeFrame], pair: Pair) -> None:
    large = twin(b"wordsbody", 8, 5, 3)
    pair[1].sendall(b"more and more")
    assert large.receive(pair[0].fileno()) == 4
    large.grow(12)
    assert large.receive(pair[0].fileno()) == 4
    assert large.cut(2) == b"nd"
    assert large.view() == b"bodymore a"
    assert large.behind(b"abc") == b"abcbodymore a"


@pytest.mark.parametrize("size", [-1, 6])
def test_no_more_is_cut_off_than_has_come(twin: type[LargeFrame], size: int) -> None:
    with pytest.raises(ValueError, match="so much"):
        twin(b"begin", 9).cut(size)


def test_nothing_has_come(twin: type[LargeFrame], pair: Pair) -> None:
    large = twin(b"begin", 100)
    with pytest.raises(BlockingIOError):
        large.receive(pair[0].fileno())
    assert large.filled == 5


def test_the_peer_has_closed(twin: type[LargeFrame], pair: Pair) -> None:
    pair[1].close()
    assert twin(b"", 100).receive(pair[0].fileno()) == 0


def test_no_such_descriptor(twin: type[LargeFrame]) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        twin(b"", 100).receive(-1)


def test_what_was_handed_on_is_not_written_again(twin: type[LargeFrame], pair: Pair) -> None:
    large = twin(b"begin", 100)
    whole = large.whole()
    assert (large.filled, large.room) == (0, 0)
    pair[1].sendall(b"more")
    if twin is not LargeFrame:
        with pytest.raises(ValueError, match="not whole"):
            twin(b"begin", 9).behind(b"")
        with pytest.raises(ValueError, match="in front"):
            twin(b"begin", 9, 0, 1).whole()
        with pytest.raises(ValueError, match="does not fit"):
            twin(b"begin", 9, 6)
        for again in (large.whole, lambda: large.receive(pair[0].fileno())):
            with pytest.raises(ValueError, match="whole"):
                again()
    assert whole == b"begin"


def test_a_view_leads_to_nothing_but_what_has_come(twin: type[LargeFrame]) -> None:
    """The bytes in front of it are still to be written: nobody may see, or hash, them before."""
    large = twin(b"wordsbody", 8, 5, 3)
    seen = large.view()
    assert not isinstance(seen.obj, bytes)
    with pytest.raises(TypeError):
        seen[0] = 1
    whole = large.behind(b"abc")
    del large
    assert seen == b"body", "it keeps what it shows"
    assert whole == b"abcbody"
    assert hash(whole) == hash(b"abc" + b"body")


@pytest.mark.skipif(LargeFrame is new_large_frame, reason="the compiled twin is not built")
def test_the_compiled_one_says_what_it_is_not_ready_for() -> None:
    large = new_large_frame(b"begin", 9)
    with pytest.raises(BufferError, match="not whole"):
        memoryview(large)
    large.view()
    large.behind(b"")
    for call in (lambda: large.behind(b""), large.view):
        with pytest.raises(ValueError, match="whole"):
            call()
