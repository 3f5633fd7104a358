"""What every form promises: what core asks of one is asked here of all."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.compaction import Removal
from magnetar.core.entry.form import Chunk, Form, MarkKind, TransactionalForm, TransactionMark
from magnetar.core.entry.forms import FOREIGN, NATIVE
from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.record import Record
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.testing import note_form

EVERY: list[Form] = [NATIVE, *(form for _, form in FOREIGN), note_form]
TRANSACTIONAL: list[TransactionalForm] = [kafka, note_form]
TEXT = st.text(max_size=30).map(str.encode)
CONTENTS = st.lists(st.tuples(TEXT, st.none() | TEXT), min_size=1, max_size=9)
forms = pytest.mark.parametrize("form", EVERY, ids=lambda form: form.__name__)


def recorded(contents: list[tuple[bytes, bytes | None]], time_ms: int) -> list[Record]:
    return [Record(place, time_ms, *each) for place, each in enumerate(contents)]


@forms
@given(contents=CONTENTS, time_ms=st.integers(1, 2**45))
def test_messages_cross_into_a_form_and_out_of_it(
    form: Form, contents: list[tuple[bytes, bytes | None]], time_ms: int
) -> None:
    records = recorded(contents, time_ms)
    sent = form.entry_of(records, 70, time_ms, "p")
    assert [one._replace(headers=()) for one in form.records(sent)] == records
    assert form.publish_time(sent) == form.latest_time(sent) == time_ms
    assert form.chunk(sent) is None
    assert form.deliver_at(sent) is None
    assert form.transaction_mark(sent) is None
    items = form.unpacked(sent).items
    assert [(one.place, one.key, one.size) for one in items] == [
        (one.place, one.key, -1 if one.value is None else len(one.value)) for one in records
    ]
    assert form.keyed(sent).items == items
    assert list(form.remaining_places(sent)) == []
    left = form.keyed(sent).without(Removal([0]))
    rest = [] if left is None else form.records(left)
    assert [one._replace(headers=()) for one in rest] in (
        records[1:],
        [one._replace(place=place) for place, one in enumerate(records[1:])],
    )


@forms
@given(contents=CONTENTS, time_ms=st.integers(1, 2**45))
def test_messages_are_the_records_with_more_said(
    form: Form, contents: list[tuple[bytes, bytes | None]], time_ms: int
) -> None:
    sent = form.entry_of(recorded(contents, time_ms), 70, time_ms, "p")
    messages = form.messages(sent)
    assert [(one.place, one.key, one.value, list(one.headers)) for one in messages] == [
        (one.place, one.key, one.value, list(one.headers)) for one in form.records(sent)
    ]
    assert {one.publish_ms for one in messages} == {time_ms}
    assert {one.event_ms for one in messages} <= {time_ms, -1}


@forms
@given(contents=CONTENTS, data=st.data())
def test_what_compaction_leaves_is_the_rest(
    form: Form, contents: list[tuple[bytes, bytes | None]], data: st.DataObject
) -> None:
    records = recorded(contents, 5)
    entry = form.unpacked(form.entry_of(records, 0, 5, "p"))
    places = range(len(records))
    lost = set(places)
    if entry.loses_some:
        lost = data.draw(st.sets(st.sampled_from(places)))
    left = entry.without(Removal(lost))
    found = [] if left is None else [one.place for one in form.unpacked(left).items]
    if form is not note_form:  # which counts places anew
        assert found == [place for place in places if place not in lost]
    assert len(found) == len(records) - len(lost)


@forms
@given(garbage=st.binary(max_size=100), cut=st.integers(0, 60))
def test_damage_is_corrupted_or_passed_over(form: Form, garbage: bytes, cut: int) -> None:
    whole = form.entry_of(recorded([(b"k", b"v")], 5), 0, 5, "p")
    begins = whole[:9]
    for sent in (begins + garbage, whole[: max(cut, len(begins))]):
        for total in (
            form.publish_time,
            form.latest_time,
            form.deliver_at,
            form.ordering_key,
            form.sequence,
            form.chunk,
        ):
            total(sent)
        for raising in (form.records, form.transaction_mark, form.unpacked):
            with suppress(Corrupted):
                raising(sent)


@pytest.mark.parametrize("form", TRANSACTIONAL, ids=lambda form: form.__name__)
@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_ends_a_transaction_and_has_no_message(
    form: TransactionalForm, committed: bool
) -> None:
    sent = form.marker(7, 0, 5, committed=committed)
    kind = MarkKind.COMMIT if committed else MarkKind.ABORT
    assert form.transaction_mark(sent) == TransactionMark(7, kind)
    assert not form.records(sent)


def test_the_last_chunk() -> None:
    assert [Chunk(b"u", number, 3).is_last for number in range(3)] == [False, False, True]
