"""Which form an entry has."""

from __future__ import annotations

import pytest

from magnetar.core.entry import forms
from magnetar.core.entry.forms import FOREIGN, NATIVE, form_of
from magnetar.core.entry.record import Record
from magnetar.core.testing.entries import entry

RECORD = Record(0, 5, b"k", b"v")


def test_each_form_knows_its_own() -> None:
    for form in (NATIVE, *(form for _, form in FOREIGN)):
        assert form_of(form.entry_of([RECORD], 0, 5, "kafka")) is form


@pytest.mark.parametrize("sent", [entry(b"v"), b"", b"\0\0\0\x02\x0a\x05kafkaesque\x10\x00\x18"])
def test_what_names_no_form_is_native(sent: bytes) -> None:
    assert form_of(sent) is NATIVE


def test_no_form_begins_as_another() -> None:
    assert len(forms.told_apart(forms.FOREIGN)) == len(forms.FOREIGN)
    begins = [begin for begin, _ in forms.FOREIGN]
    for one in begins:
        assert [other for other in begins if other.startswith(one)] == [one]
