"""The entry that stands where one is lost."""

from __future__ import annotations

from magnetar.core.entry import empty, header
from magnetar.core.entry.compaction import Removal
from magnetar.core.entry.empty import EMPTY
from magnetar.core.entry.form import Form
from magnetar.core.entry.forms import NATIVE, form_of


def test_it_has_no_messages_and_no_protocol() -> None:
    form: Form = empty
    assert form_of(EMPTY) is form
    assert not form.records(EMPTY)
    assert form.entry_of((), 0, 0, "") == EMPTY
    assert (form.publish_time(EMPTY), form.latest_time(EMPTY)) == (0, -1)
    for ask in (form.deliver_at, form.ordering_key, form.sequence, form.chunk):
        assert ask(EMPTY) is None
    assert form.transaction_mark(EMPTY) is None
    assert header.read(EMPTY) is header.NONE


def test_compaction_leaves_nothing_of_it() -> None:
    found = empty.unpacked(EMPTY)
    assert not found.items
    assert found.without(Removal(())) is None


def test_readers_that_expect_the_native_form_are_not_misled() -> None:
    assert NATIVE.deliver_at(EMPTY) is None
    assert NATIVE.sequence(EMPTY) is None
    assert NATIVE.chunk(EMPTY) is None
