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
