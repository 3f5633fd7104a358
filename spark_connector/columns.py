"""The columns of a DataFrame, and record batches of them from stored entries.

Spark wants exactly its own Arrow types: plain strings and binaries, timestamps of microseconds in
UTC. It cannot tell a Python source which columns a query needs, so `columns` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.entry.record import NO_TIME, DetailedRecord

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH: Final = 10_000
BYTES_PER_BATCH: Final = 8 << 20
"""Batches of such sizes go to Spark's JVM at the best speed."""

MS_MAX: Final = ((1 << 63) - 1) // 1000
_HEADERS: Final = "array<struct<key: string, value: binary>>"
TYPES: Final = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "ledger_id": "bigint",
    "entry_id": "bigint",
    "batch_index": "int",
    "publish_time": "timestamp",
    "event_time": "timestamp",
    "key": "binary",
    "ordering_key": "binary",
    "value": "binary",
    "headers": _HEADERS,
    "producer_name": "string",
    "sequence_id": "bigint",
    "schema_version": "bigint",
    "protocol": "string",
}
"""The columns and Spark's names of their types."""
COLUMNS: Final = tuple(TYPES)


def ddl(columns: Sequence[str]) -> str:
    """The schema as Spark reads it."""
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "binary": pa.binary(),
        _HEADERS: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }
    return pa.schema([(name, types[TYPES[name]]) for name in columns])


class EntryRows:
    """The messages of one entry that are rows, and what all of them have in common."""

    __slots__ = (
        "entry_id", "first_offset", "ledger_id", "messages", "partition", "protocol", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        partition: int,
        position: tuple[int, int],
        first_offset: int | None,
        protocol: str,
        messages: Sequence[DetailedRecord],
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.ledger_id, self.entry_id = position
        self.first_offset = first_offset
        """The offset of the message at place 0; None where another broker stored it without."""
        self.protocol = protocol
        self.messages = messages


class BatchBuilder:
    """Gathers rows until there are enough for a record batch."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._schema = arrow_schema(columns)
        self._gather = [(_COLUMN[name], name) for name in columns]
        self._lists: dict[str, list[Any]] = {name: [] for name in columns}
        self.rows = 0
        self._bytes = 0

    def add(self, rows: EntryRows) -> None:
        messages = rows.messages
        self.rows += len(messages)
        self._bytes += sum([len(one.value or b"") + len(one.key or b"") for one in messages])
        self._bytes += sum([len(each or b"") for one in messages for _, each in one.headers])
        for gather, name in self._gather:
            self._lists[name] += gather(rows)

    @property
    def full(self) -> bool:
        return self.rows >= ROWS_PER_BATCH or self._bytes >= BYTES_PER_BATCH

    def build(self) -> pa.RecordBatch:
        """What was gathered since the last call."""
        import pyarrow as pa

        arrays = [pa.array(self._lists[field.name], type=field.type) for field in self._schema]
        self.rows = self._bytes = 0
        self._lists = {name: [] for name in self._lists}
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _time(ms: int) -> int | None:
    """Microseconds; None for what was never milliseconds, and would not fit."""
    return None if ms == NO_TIME or abs(ms) > MS_MAX else ms * 1000


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _version(data: bytes | None) -> int | None:
    """Pulsar's schema versions are numbers of eight bytes (`LongSchemaVersion.java`)."""
    return int.from_bytes(data, "big", signed=True) if data is not None and len(data) == 8 else None


def _offsets(first: int | None, messages: Sequence[DetailedRecord]) -> list[int | None]:
    if first is None:
        return [None] * len(messages)
    return [first + one.place for one in messages]


def _headers(one: DetailedRecord) -> list[tuple[str, bytes | None]]:
    return [(name.decode(errors="replace"), value) for name, value in one.headers]


_COLUMN: Final[dict[str, Callable[[EntryRows], list[Any]]]] = {
    "topic": lambda rows: [rows.topic] * len(rows.messages),
    "partition": lambda rows: [rows.partition] * len(rows.messages),
    "offset": lambda rows: _offsets(rows.first_offset, rows.messages),
    "ledger_id": lambda rows: [rows.ledger_id] * len(rows.messages),
    "entry_id": lambda rows: [rows.entry_id] * len(rows.messages),
    "batch_index": lambda rows: [one.place for one in rows.messages],
    "publish_time": lambda rows: [_time(one.publish_ms) for one in rows.messages],
    "event_time": lambda rows: [_time(one.event_ms) for one in rows.messages],
    "key": lambda rows: [one.key for one in rows.messages],
    "ordering_key": lambda rows: [one.ordering_key for one in rows.messages],
    "value": lambda rows: [one.value for one in rows.messages],
    "headers": lambda rows: [_headers(one) for one in rows.messages],
    "producer_name": lambda rows: [_text(one.producer) for one in rows.messages],
    "sequence_id": lambda rows: [one.sequence_id for one in rows.messages],
    "schema_version": lambda rows: [_version(one.schema_version) for one in rows.messages],
    "protocol": lambda rows: [rows.protocol] * len(rows.messages),
}
