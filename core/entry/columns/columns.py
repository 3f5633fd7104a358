"""Messages of stored entries as columns, the layout of Apache Arrow. Pure.

What reads millions of messages has no use for an object each. `columns_of` gives an object that
takes entries and gathers their messages as columns:

    add_entries   as many of a run as it can take apart itself: none in Python; compiled, those of
                  Pulsar's and Kafka's producers that are neither a chunk nor encrypted, nor (unless
                  it is told to) of a transaction
    add           messages that a form has decoded (`Form.messages`): for all the others
    take          the columns so far, and begins anew

so that a caller gives each run to `add_entries`, and the entry where that stops to `add`.

Invariant: an entry that `add_entries` takes has the same rows as by `Form.messages` and `add`; one
that it does not take has left nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from magnetar.core.entry.record import NO_TIME, DetailedRecord
from magnetar.core.native import quickest

MS_MAX: Final = ((1 << 63) - 1) // 1000
"""The latest time in ms of which the microseconds fit."""
ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 8 << 20
"""Record batches of such sizes reach Spark's JVM at the best speed."""
PRODUCER_BYTES_MAX: Final = 1024
"""A longer name of a producer is cut: each row has it, so an entry of a megabyte would be gigabytes
of rows.
"""


class Buffers(NamedTuple):
    """The buffers of one column as Arrow lays them out; `nulls` of its values are absent."""

    nulls: int
    valid: bytes | None
    ends: bytes | None
    """Offsets of 32 bits, of text, bytes and lists: one more than there are values."""
    values: bytes


class HeaderBuffers(NamedTuple):
    """Lists of names and values: where the pairs of each row end, and the pairs."""

    ends: bytes
    names: Buffers
    values: Buffers


Taken = dict[str, "list[Any] | Buffers | HeaderBuffers"]
"""Each column by its name: a list of values, or what is compiled has made of it."""


class Columns(Protocol):
    """See the module's docstring."""

    @property
    def rows(self) -> int: ...
    @property
    def full(self) -> bool: ...

    def add_entries(
        self,
        entries: Sequence[bytes],
        at: int,
        first_entry: int,
        start: int,
        end: int,
        are_committed: bool,  # the twin's arguments are positional, too
    ) -> int:
        """Take apart the entries from the place `at` on, of which the one at place 0 has the id
        `first_entry`, until one is not for here, or the columns are full; returns its place. Only
        messages with an offset in `start`..`end` count. `are_committed` tells that no message of a
        transaction is to be left out.
        """
        ...

    def add(
        self,
        entry_id: int,
        first_offset: int | None,
        protocol: str,
        messages: Sequence[DetailedRecord],
    ) -> None:
        """Add messages of one entry; `first_offset` is that of its place 0, None if unknown."""
        ...

    def take(self) -> Taken: ...


class ListedColumns:
    """Columns as lists of Python's values: the reference."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = [name for name in names if name in NAMES]
        self._gather = [(name, _GATHER[name]) for name in names if name in _GATHER]
        self._begin()

    def _begin(self) -> None:
        self.rows = self._bytes = 0
        self._lists: dict[str, list[Any]] = {name: [] for name in self._names}

    @property
    def full(self) -> bool:
        return self.rows >= ROWS_MAX or self._bytes >= BYTES_MAX

    def add_entries(
        self,
        entries: Sequence[bytes],
        at: int,
        first_entry: int,
        start: int,
        end: int,
        are_committed: bool,
    ) -> int:
        return at

    def add(
        self,
        entry_id: int,
        first_offset: int | None,
        protocol: str,
        messages: Sequence[DetailedRecord],
    ) -> None:
        rows = len(messages)
        self.rows += rows
        self._bytes += sum([len(one.value or b"") + len(one.key or b"") for one in messages])
        self._bytes += sum(
            [len(name) + len(each or b"") for one in messages for name, each in one.headers]
        )
        self._bytes += sum([len(one.ordering_key or b"") for one in messages])
        self._bytes += sum([min(len(one.producer or b""), PRODUCER_BYTES_MAX) for one in messages])
        lists = self._lists
        for name, gather in self._gather:
            lists[name] += [gather(one) for one in messages]
        if "entry_id" in lists:
            lists["entry_id"] += [entry_id] * rows
        if "protocol" in lists:
            lists["protocol"] += [protocol] * rows
        if "offset" in lists:
            lists["offset"] += [
                None if first_offset is None else first_offset + one.place for one in messages
            ]

    def take(self) -> Taken:
        taken: Taken = dict(self._lists)
        self._begin()
        return taken


def _time(ms: int) -> int | None:
    """Microseconds; None for what was never milliseconds, and would not fit."""
    return None if ms == NO_TIME or abs(ms) > MS_MAX else ms * 1000


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _name(data: bytes | None) -> str | None:
    return None if data is None else _text(data[:PRODUCER_BYTES_MAX])


def _version(data: bytes | None) -> int | None:
    """Pulsar's schema versions are numbers of eight bytes (`LongSchemaVersion.java`)."""
    return int.from_bytes(data, "big", signed=True) if data is not None and len(data) == 8 else None


_GATHER: Final[dict[str, Callable[[DetailedRecord], Any]]] = {
    "batch_index": lambda one: one.place,
    "publish_time": lambda one: _time(one.publish_ms),
    "event_time": lambda one: _time(one.event_ms),
    "key": lambda one: one.key,
    "ordering_key": lambda one: one.ordering_key,
    "value": lambda one: one.value,
    "headers": lambda one: [(name.decode(errors="replace"), value) for name, value in one.headers],
    "producer_name": lambda one: _name(one.producer),
    "sequence_id": lambda one: one.sequence_id,
    "schema_version": lambda one: _version(one.schema_version),
}
NAMES: Final = frozenset((*_GATHER, "entry_id", "protocol", "offset"))
"""The columns that messages and their entries have."""


def py_columns_of(names: Sequence[str]) -> Columns:
    """Columns with those of these names that are in `NAMES`."""
    return ListedColumns(names)


columns_of = quickest(py_columns_of, "magnetar.core.entry.columns.compiled")
