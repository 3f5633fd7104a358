"""Converts entries from one form to another. Pure.

An entry is stored as its producer sent it, converted when a client reads it in another protocol,
and never stored converted. (KoP's `entryFormat` chooses one form when an entry is written.) What
both protocols have is preserved exactly: keys, values (null differs from empty), headers and
properties, times, order. docs/kafka.md lists what only one of them has.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.core.entry.form import Form
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.record import Record


def converted(sent: bytes, into: Form, index: int) -> tuple[bytes, int]:
    """The entry in another form, and its number of messages; the first has that index.

    An entry without messages, such as the marker of a transaction, gives no bytes. Raises
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
