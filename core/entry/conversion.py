"""Entries of one form, converted into another. Pure.

What is stored is what its producer sent. An entry is converted when somebody reads it in another
protocol, and never stored again. What both protocols have is exact: keys, values (null is not
empty), headers and properties, times, order. What only one of them has is listed in docs/kafka.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.core.entry.form import Form
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.record import Record


def converted(sent: bytes, into: Form, index: int) -> tuple[bytes, int]:
    """The entry in another form, and how many messages it has; the first has that index.

    An entry without messages, such as the marker of a transaction, converts to no bytes. Raises
    `Corrupted`.
    """
    form = form_of(sent)
    records = form.records(sent)
    if not records:
        return b"", 0
    return into.entry_of(records, index, form.publish_time(sent), form.NAME), len(records)


def records_of(sent: bytes) -> Sequence[Record]:
    """The messages of an entry; none of one that is for brokers only. Raises `Corrupted`."""
    return form_of(sent).records(sent)
