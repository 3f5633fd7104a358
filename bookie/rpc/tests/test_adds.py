"""Rows of adds: what is parsed together is what was sent one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import entries
from magnetar.bookie.rpc import adds, version2
from magnetar.bookie.rpc.messages import Add, Added, Status

KEY = bytes(range(20))


def entry_of(ledger_id: int, entry_id: int, rest: bytes = b"") -> bytes:
    begin = ledger_id.to_bytes(8, "big", signed=True) + entry_id.to_bytes(8, "big", signed=True)
    return begin + bytes(16) + rest


def add(ledger_id: int, entry_id: int, rest: bytes = b"", **changed) -> Add:
    return Add(ledger_id, entry_id, KEY, entry_of(ledger_id, entry_id, rest), **changed)


def frame(request: Add) -> bytes:
    body = version2.pack_request(request)
    return len(body).to_bytes(4, "big") + body


def entries_in(row: adds.Adds) -> list[bytes]:
    run = row.run
    ends = zip(run.offsets[:-1], run.offsets[1:], strict=True)
    return [run.blob[start + 4 : end] for start, end in ends]


def test_a_row() -> None:
    requests = [add(7, 3 + n, b"x" * n) for n in range(5)]
    data = b"".join(map(frame, requests))
    row, end = adds.adds_at(b"before" + data, 6)
    assert end == 6 + len(data)
    assert (row.master_key, row.recovery, row.high_priority) == (KEY, False, False)
    assert (row.run.ledger_id, row.run.first, row.run.last) == (7, 3, 7)
    assert entries_in(row) == [request.entry for request in requests]


def test_the_run_is_that_of_our_own_entries() -> None:
    sealed = entries.seal(7, 0, -1, 0, [b"one", b"two"])
    data = b"".join(
        frame(Add(7, n, KEY, sealed.blob[start + 4 : end]))
        for n, (start, end) in enumerate(zip(sealed.offsets, sealed.offsets[1:], strict=False))
    )
    row, _ = adds.adds_at(data, 0)
    assert row.run == sealed


FIRST = frame(add(7, 3))
ANOTHER = {
    "an entry with a gap before it": add(7, 5),
    "the same entry again": add(7, 3),
    "another ledger": add(8, 4),
    "another key": Add(7, 4, bytes(20), entry_of(7, 4)),
    "another flag": add(7, 4, recovery=True),
}


@pytest.mark.parametrize("name", ANOTHER)
def test_a_row_ends_before(name: str) -> None:
    data = FIRST + frame(ANOTHER[name])
    row, end = adds.adds_at(data, 0)
    assert (row.run.count, end) == (1, len(FIRST))
    row, end = adds.adds_at(data, end)
    assert end == len(data)
    assert entries_in(row) == [ANOTHER[name].entry]


@pytest.mark.parametrize("cut", range(1, len(FIRST)))
def test_a_row_ends_before_an_add_that_is_not_whole(cut: int) -> None:
    data = FIRST + frame(add(7, 4))
    row, end = adds.adds_at(data[:-cut], 0)
    assert (row.run.count, end) == (1, len(FIRST))
    assert adds.adds_at(data[:-cut], end) is None


def test_a_row_ends_before_a_read() -> None:
    read = bytes.fromhex("00000014 02020000 0000000000000007 0000000000000003") + bytes(60)
    _, end = adds.adds_at(FIRST + read, 0)
    assert end == len(FIRST)
    assert adds.adds_at(FIRST + read, end) is None


def test_an_add_that_is_too_short() -> None:
    """Its length says less than an entry has: whoever parses one frame refuses it."""
    short = (55).to_bytes(4, "big") + FIRST[4:]
    assert adds.adds_at(short, 0) is None


def test_a_row_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adds, "RUN_BYTES_MAX", 100)
    data = b"".join(frame(add(7, n, bytes(200 * (n == 0)))) for n in range(5))
    counts = []
    at = 0
    while at < len(data):
        row, at = adds.adds_at(data, at)
        counts.append(row.run.count)
    assert counts == [1, 2, 2]


def test_responses() -> None:
    row, _ = adds.adds_at(b"".join(frame(add(7, n, recovery=True)) for n in (3, 4)), 0)
    data = adds.pack_responses(row, Status.FENCED)
    bodies = [data[4:28], data[32:]]
    assert data[:4] == data[28:32] == (24).to_bytes(4, "big")
    assert bodies == [
        version2.pack_response(row.header, Added(Status.FENCED, 7, n)) for n in (3, 4)
    ]


steps = st.tuples(
    st.sampled_from([0, 1, 1, 1, 2]), st.integers(0, 1), st.booleans(), st.binary(max_size=5)
)


@given(st.lists(steps, max_size=20))
def test_nothing_is_lost_or_changed(steps: list[tuple[int, int, bool, bytes]]) -> None:
    """The rows together are the adds one by one."""
    entry_id, sent = 0, []
    for step, ledger_id, recovery, rest in steps:
        entry_id += step
        sent.append(add(ledger_id, entry_id, rest, recovery=recovery))
    data = b"".join(map(frame, sent))
    at, found = 0, []
    while at < len(data):
        row, at = adds.adds_at(data, at)
        found += [(entry, row.recovery, row.master_key) for entry in entries_in(row)]
    assert found == [(one.entry, one.recovery, KEY) for one in sent]
