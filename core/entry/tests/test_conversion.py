"""Entries of one form in another."""

from __future__ import annotations

import pytest

from magnetar.core.entry import conversion
from magnetar.core.entry.form import Form
from magnetar.core.entry.forms import FOREIGN, NATIVE, form_of
from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.record import Record
from magnetar.core.kernel.errors import Corrupted

RECORDS = [
    Record(0, 5, b"k", b"v", ((b"name", b"value"),)),
    Record(1, 6, None, b""),
    Record(2, 7, b"gone", None),
]
EVERY: list[Form] = [NATIVE, *(form for _, form in FOREIGN)]
each = pytest.mark.parametrize("form", EVERY, ids=lambda form: form.__name__)


@each
@pytest.mark.parametrize("into", EVERY, ids=lambda form: form.__name__)
def test_from_every_form_into_every_form(form: Form, into: Form) -> None:
    sent = form.entry_of(RECORDS, 70, 9, "p")
    converted, count = conversion.converted(sent, into, 70)
    assert form_of(converted) is into
    assert into.publish_time(converted) == 9
    assert count == len(RECORDS)
    assert [one._replace(headers=tuple(one.headers)) for one in into.records(converted)] == RECORDS
    assert conversion.records_of(converted) == into.records(converted)


@each
def test_a_marker_is_nothing_elsewhere(form: Form) -> None:
    sent = kafka.marker(7, 0, 5, committed=True)
    assert conversion.converted(sent, form, 70) == (b"", 0)
    assert not conversion.records_of(sent)


@each
def test_damage_is_corrupted(form: Form) -> None:
    torn = kafka.entry_of(RECORDS, 70, 9, "p")[:-2]
    with pytest.raises(Corrupted):
        conversion.converted(torn, form, 70)
