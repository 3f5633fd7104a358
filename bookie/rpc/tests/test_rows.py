"""Rows of adds: the compiled twins do the same as the pure functions, whatever the bytes."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.bookie.rpc import rows

KEY = b"k" * 20


@pytest.fixture(scope="module")
def compiled():
    return pytest.importorskip(
        "magnetar.bookie.rpc.compiled", reason="built where there is a C compiler"
    )


def frame(ledger_id, entry_id, payload=b"", key=KEY, header=0x02010000):
    body = struct.pack(">I", header) + key + struct.pack(">qqqq", ledger_id, entry_id, -1, 0)
    return struct.pack(">I", len(body + payload)) + body + payload


def test_a_row_is_gathered():
    data = b"??" + b"".join(frame(1, i, b"p" * i) for i in range(5)) + frame(2, 5)
    blob, offsets, end = rows.gather(data, 2, 1 << 20)
    assert end == len(data) - len(frame(2, 5))
    assert list(offsets) == [sum(36 + i for i in range(n)) for n in range(6)]
    assert blob[offsets[3] : offsets[4]] == struct.pack(">I", 35) + frame(1, 3, b"ppp")[28:]


@pytest.mark.parametrize(
    "following",
    [
        frame(1, 2), frame(2, 1), frame(1, 1, key=b"o" * 20), frame(1, 1, header=0x02010002),
        frame(1, 1)[:-1], b"\0\0\0\x08", b"\xff" * 70,
    ],
)  # fmt: skip
def test_a_row_ends_before_another(following):
    blob, offsets, end = rows.gather(frame(1, 0) + following, 0, 1 << 20)
    assert (len(blob), list(offsets), end) == (36, [0, 36], 60)


def test_a_row_is_cut_at_its_limit():
    data = b"".join(frame(1, i) for i in range(5))
    assert rows.gather(data, 0, 100)[2] == 2 * 60
    assert rows.gather(data, 0, 1)[2] == 60
    assert rows.gather(data[:50], 0, 100) == (b"", rows.array("I", [0]), 0)


def test_records_are_framed_as_they_were_gathered():
    data = b"".join(frame(1, i, b"p" * i) for i in range(5))
    blob, offsets, _ = rows.gather(data, 0, 1 << 20)
    assert rows.frames(blob, offsets, data[4:28]) == data
    assert rows.frames(blob, offsets[2:4], data[4:28]) == frame(1, 2, b"pp")


def response(entry_id, ledger_id=1, code=0, head=0x02010000):
    return struct.pack(">IIiqq", 24, head, code, ledger_id, entry_id)


def test_a_row_of_responses():
    data = b"?" + rows.responses(0x02010000, 0, 7, 3, 4) + response(7, 8)
    assert rows.answered(data, 1) == (0, 7, 3, 4, 1 + 4 * 28)
    assert rows.answered(response(5, code=104), 0) == (104, 1, 5, 1, 28)
    assert rows.answered(response(5)[:-1], 0) == (0, 0, 0, 0, 0)
    assert rows.answered(response(5, head=0x02020000), 0)[3] == 0


pieces = st.one_of(
    st.builds(
        frame,
        st.sampled_from([1, 2, 2**63 - 1]),
        st.sampled_from([0, 1, 2, 3, -1, 2**63 - 2, 2**63 - 1, -(2**63)]),
        st.binary(max_size=40),
        st.sampled_from([KEY, b"o" * 20]),
        st.sampled_from([0x02010000, 0x02010006]),
    ),
    st.binary(max_size=70),
)


@given(st.lists(pieces, max_size=8), st.integers(0, 80), st.integers(0, 400))
@example([frame(1, 2**63 - 1), frame(1, -(2**63))], 0, 400)
@example([frame(1, i) for i in range(8)], 0, 400)
def test_gathering_alike(compiled, parts, start, bytes_max):
    data = b"".join(parts)
    start = min(start, len(data))
    assert compiled.gather(data, start, bytes_max) == rows.gather(data, start, bytes_max)


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 200), st.integers(0, 2**62), st.integers(0, 2**62),
    st.integers(0, 5),
)  # fmt: skip
def test_answering_alike(compiled, head, code, ledger_id, first, count):
    arguments = head, code, ledger_id, first, count
    assert compiled.responses(*arguments) == rows.responses(*arguments)


def test_what_does_not_fit_is_refused(compiled):
    with pytest.raises(OverflowError):
        compiled.responses(0, 0, 1, 2**63 - 1, 2)
    with pytest.raises(IndexError):
        compiled.gather(b"abc", 4, 10)


@given(st.lists(st.binary(max_size=9), max_size=6), st.binary(max_size=30))
def test_framing_alike(compiled, bodies, same):
    blob, offsets = b"", rows.array("I", [0])
    for body in bodies:
        blob += struct.pack(">I", len(body)) + body
        offsets.append(len(blob))
    assert compiled.frames(blob, offsets, same) == rows.frames(blob, offsets, same)


@given(
    st.lists(
        st.builds(
            response,
            st.sampled_from([-1, 0, 1, 2, 2**63 - 1, -(2**63)]),
            st.sampled_from([1, -1]),
            st.sampled_from([0, 101, -1]),
            st.sampled_from([0x02010000, 0x02010001, 0x02020000]),
        )
        | st.binary(max_size=30),
        max_size=6,
    ),
    st.integers(-1, 40),
)
@example([response(2**63 - 1), response(-(2**63))], 0)
def test_responses_alike(compiled, parts, start):
    data = b"".join(parts)
    assert compiled.answered(data, start) == rows.answered(data, start)


def test_records_that_are_none_are_refused(compiled):
    for offsets in ([0, 3], [0, 9], [4, 0]):
        with pytest.raises(IndexError):
            compiled.frames(b"12345678", rows.array("I", offsets), b"")
    with pytest.raises(TypeError):
        compiled.frames(b"12345678", rows.array("Q", [0, 8]), b"")
