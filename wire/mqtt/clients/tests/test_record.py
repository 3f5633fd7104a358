"""Stored sessions: what is written is read, and anything else is noticed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from magnetar.core.kernel.errors import Corrupted
from magnetar.wire.mqtt.clients.record import (
    SessionProgress,
    SessionRecord,
    StoredInFlight,
    StoredPlace,
    StoredSubscription,
    StoredWill,
    decode,
    encode,
    encode_progress,
)

u16, u32, u63 = st.integers(0, 65_535), st.integers(0, 2**32 - 1), st.integers(-1, 2**63 - 1)
text = st.text(st.characters(codec="utf-8"), max_size=20)
subscriptions = st.builds(
    StoredSubscription, text, st.integers(0, 2), st.booleans(), st.booleans(), u32
)
places = st.builds(StoredPlace, text, u63, u63, u16)
wills = st.builds(StoredWill, text, st.binary(), st.integers(0, 2), st.booleans(), st.binary(), u32)


@given(
    expiry=u32, ended=u63, subscriptions=st.lists(subscriptions), places=st.lists(places),
    received=st.lists(u16), will=st.none() | wills, data=st.data(),
)  # fmt: skip
def test_what_is_written_is_read(
    expiry: int,
    ended: int,
    subscriptions: list[StoredSubscription],
    places: list[StoredPlace],
    received: list[int],
    will: StoredWill | None,
    data: st.DataObject,
) -> None:
    in_flight = ()
    if places:
        one = st.builds(
            StoredInFlight, u16, st.integers(0, len(places) - 1), u63, u63, u16,
            st.integers(1, 2), st.booleans(),
        )  # fmt: skip
        in_flight = tuple(data.draw(st.lists(one)))
    record = SessionRecord(
        expiry, ended, tuple(subscriptions), tuple(places), in_flight, tuple(received), will,
        doubts=tuple(places[:1]),
    )  # fmt: skip
    assert decode(encode(record)) == record
    before = SessionRecord(expiry, ended, record.subscriptions, will=will)
    progress = SessionProgress(
        record.places, record.in_flight, record.received, record.marks, record.doubts
    )
    assert decode(encode(before), encode_progress(progress)) == record


@given(before=st.lists(subscriptions), changes=st.lists(st.tuples(text, st.none() | subscriptions)))
def test_changed_filters_replace_those_of_the_record(
    before: list[StoredSubscription], changes: list[tuple[str, StoredSubscription | None]]
) -> None:
    expected = {one.filter: one for one in before}
    changed = tuple((filter, one and replace(one, filter=filter)) for filter, one in changes)
    for filter, one in changed:
        expected.pop(filter, None)
        if one is not None:
            expected[filter] = one
    progress = encode_progress(SessionProgress((), (), (), (), (), changed))
    found = decode(encode(SessionRecord(1, subscriptions=tuple(before))), progress)
    assert {one.filter: one for one in found.subscriptions} == expected


@given(st.binary())
def test_any_other_bytes_are_noticed(data: bytes) -> None:
    for one in (data, b"\x01" + data):
        with suppress(Corrupted):
            decode(one)
        if one:
            with suppress(Corrupted):
                decode(encode(SessionRecord(1)), one)


def test_a_log_that_the_record_does_not_have() -> None:
    record = SessionRecord(1, in_flight=(StoredInFlight(1, 0, 0, 0, 0, 1, False),))
    with pytest.raises(Corrupted, match="a log that it does not have"):
        decode(encode(record))
