"""Entries of one form in another, for those who read them there. Pure.

What is stored is what its producer sent; it crosses entry by entry when it is read, and is never
stored again. What both sides have is exact: keys, values that are there, empty or absent, headers
and properties, times, the order. What only one side has is listed in docs/kafka.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.core.entry.form import Form
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.record import Record


def crossed(sent: bytes, into: Form, index: int) -> tuple[bytes, int]:
    """An entry in another form, and how many messages it has; `index` is that of the first.

    There may be none, as in the marker of a transaction: then the entry is empty. Raises
    `Corrupted`.
    """
    form = form_of(sent)
    records = form.records(sent)
    if not records:
        return b"", 0
    return into.entry_of(records, index, form.publish_time(sent), form.NAME), len(records)


def to_records(sent: bytes) -> Sequence[Record]:
    """The messages of an entry; none of one that is for brokers only. Raises `Corrupted`."""
    return form_of(sent).records(sent)
