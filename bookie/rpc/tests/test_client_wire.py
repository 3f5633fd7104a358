"""A client's wire against a bookie's: what one packs the other parses, in any pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import digests, entries
from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.client_wire import (
    AddsAnswered,
    ClientWire,
    MatchedResponse,
    pack_adds,
    pack_request,
)
from magnetar.bookie.rpc.messages import (
    BatchRead,
    Lac,
    Read,
    ReadEntries,
    ReadEntry,
    ReadLac,
    Status,
)
from magnetar.bookie.rpc.wire import BookieWire
from magnetar.core.kernel.errors import WireError

KEY = digests.master_key(b"")


def heard(*frames):
    """What a bookie hears of version 2."""
    wire = BookieWire()
    data = b"".join(frames)
    assert wire.feed(data) == len(data)
    return wire, wire.take_events()


def test_adds_are_a_row_to_the_bookie_and_so_are_its_responses():
    run = entries.seal(5, 3, 2, 100, [b"a", b"bb", b"ccc"])
    wire, events = heard(*pack_adds(run, KEY))
    rows = [each for each in events if isinstance(each, Adds)]
    assert sum(row.run.count for row in rows) == 3
    assert b"".join(row.run.blob for row in rows) == run.blob
    assert not rows[0].recovery
    for row in rows:
        wire.reply_adds(row, Status.FENCED)
    data = b"".join(wire.take_outgoing())
    assert ClientWire(2).feed(data) == [AddsAnswered(Status.FENCED, 5, 3, 3)]


def test_a_recovery_says_so():
    run = entries.seal(5, 3, 2, 100, [b"a"])
    _, (row,) = heard(*pack_adds(run, KEY, recovery=True))
    assert (row.recovery, row.high_priority, row.master_key) == (True, True, KEY)


def test_a_large_payload_is_not_copied():
    payload = bytes(entries.APART_BYTES)
    run = entries.seal_apart(5, 0, -1, 0, payload, b"head")
    begin, end = pack_adds(run, KEY)
    assert end is payload
    _, (row,) = heard(begin, end)
    assert entries.payloads(row.run, 0, 0, 1) == [b"head" + payload]


def answers():
    """Requests in version 2, and the bookie's responses to them."""
    run = entries.seal(5, 0, -1, 0, [b"a", b"bb"])
    requests = [Read(5, 0), BatchRead(5, 0, 77, 9, 99), Read(5, 9)]
    wire, events = heard(
        *pack_adds(run, KEY), *[pack_request(2, 0, request) for request in requests]
    )
    calls = [each for each in events if not isinstance(each, Adds)]
    for each in events:
        if isinstance(each, Adds):
            wire.reply_adds(each, Status.OK)
    entry = entries.entry_of(run, 0)
    wire.reply(calls[0], ReadEntry(Status.OK, 5, 0, entry))
    wire.reply(calls[1], ReadEntries(Status.OK, 5, 0, 77, (), (run.blob,)))
    wire.reply(calls[2], ReadEntry(Status.NO_ENTRY, 5, 9))
    expected = [
        AddsAnswered(Status.OK, 5, 0, 2),
        MatchedResponse(0, ReadEntry(Status.OK, 5, 0, entry)),
        MatchedResponse(0, ReadEntries(Status.OK, 5, 0, 77, (), (run.blob,))),
        MatchedResponse(0, ReadEntry(Status.NO_ENTRY, 5, 9)),
    ]
    return b"".join(wire.take_outgoing()), expected


def test_responses_of_version_2():
    data, expected = answers()
    assert ClientWire(2).feed(data) == expected


@given(st.lists(st.integers(0, 300), max_size=8))
def test_in_any_pieces(cuts):
    data, expected = answers()
    wire, found = ClientWire(2), []
    places = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        found += wire.feed(data[start:end])
    stored = [each for each in found if isinstance(each, AddsAnswered)]
    assert sum(each.count for each in stored) == 2
    assert [each for each in found if not isinstance(each, AddsAnswered)] == expected[1:]


def test_version_3():
    wire, (call,) = heard(pack_request(3, 42, ReadLac(5)))
    answer = Lac(Status.OK, 5, b"packet", b"entry")
    wire.reply(call, answer)
    data = b"".join(wire.take_outgoing())
    assert ClientWire(3).feed(data) == [MatchedResponse(42, answer)]
    with pytest.raises(WireError, match="version 3 has no BatchRead"):
        pack_request(3, 0, BatchRead(5, 0, 77, 9, 99))


def test_frames_have_a_limit():
    with pytest.raises(WireError, match="a frame of 1001 bytes, more than 1000"):
        ClientWire(2, 1000).feed((1001).to_bytes(4, "big"))
    with pytest.raises(WireError):
        ClientWire(2).feed(b"\0\0\0\x01x")


@given(st.binary(max_size=80))
def test_hostile_bytes_raise_the_one_error(data):
    for version in (2, 3):
        try:
            ClientWire(version, 100).feed(data)
        except WireError:
            continue
