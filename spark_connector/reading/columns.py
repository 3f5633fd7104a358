"""The columns of a DataFrame, and record batches of them.

What messages and their entries have is gathered by `core/entry/columns`; what all rows of a range
have in common is added here.

Spark wants exactly its own Arrow types: plain strings and binaries, timestamps of microseconds in
UTC. It cannot tell a Python source which columns a query needs, so `columns` does. With
`valueFormat`, `value` has another type than here, and may have a column of what does not fit it
beside it (`values/`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.core.entry.columns.columns import Buffers, HeaderBuffers, Taken, columns_of
from magnetar.spark_connector.errors import ValueMismatchError
from magnetar.spark_connector.values.decoding import (
    ColumnDecoder,
    NewVersions,
    ValueType,
    corrupt_column,
    decoder_for,
    no_new_versions,
)

if TYPE_CHECKING:
    import pyarrow as pa

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
AS_STORED: Final = ValueType()
_TO_DECODE: Final = ("value", "entry_id", "batch_index")
"""The columns without which no value is decoded: it, and where it is."""
_VERSION: Final = "schema_version"
_KEY: Final = "key"


def ddl(columns: Sequence[str], others: dict[str, str] | None = None) -> str:
    """The schema as Spark reads it; `others` are types that are not as in `TYPES`."""
    types = TYPES | (others or {})
    return ", ".join(f"{name} {types[name]}" for name in columns)


def arrow_schema(columns: Sequence[str], values: ValueType = AS_STORED) -> pa.Schema:
    """The schema as Arrow has it."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "binary": pa.binary(),
        _HEADERS: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }
    known = {name: types[kind] for name, kind in TYPES.items()}
    if values.decodes:
        known |= {"value": values.kind, values.options.corrupt: pa.binary()}
    return pa.schema([(name, known[name]) for name in columns])


class RangeRows(Struct):
    """What consecutive rows have in common, from one of them on."""

    topic: str
    partition: int
    ledger_id: int
    first: int


class BatchBuilder:
    """Gathers rows until there are enough for a record batch."""

    def __init__(
        self,
        names: Sequence[str],
        values: ValueType = AS_STORED,
        new_versions: NewVersions = no_new_versions,
    ) -> None:
        self._schema = arrow_schema(names, values)
        self._values = values
        self._decoder: ColumnDecoder | None = None
        if values.decodes and {"value", values.options.corrupt} & set(names):
            self._decoder = decoder_for(values, new_versions)
            versions = (_VERSION,) if values.by_version else ()
            keys = (_KEY,) if values.by_key else ()
            names = tuple(dict.fromkeys((*names, *_TO_DECODE, *versions, *keys)))
        self.messages = columns_of(names)
        """To be added to, behind `begin`."""
        self._ranges: list[RangeRows] = []

    def begin(self, topic: str, partition: int, ledger_id: int) -> None:
        """The rows that come next are of this range."""
        self._ranges.append(RangeRows(topic, partition, ledger_id, self.rows))

    @property
    def rows(self) -> int:
        return self.messages.rows

    @property
    def full(self) -> bool:
        return self.messages.full

    def build(self) -> pa.RecordBatch:
        """What was gathered since the last call."""
        import pyarrow as pa

        rows, taken = self.rows, self.messages.take()
        decoded = {} if self._decoder is None else self._decoded(self._decoder, taken, rows)
        arrays = [
            decoded[field.name]
            if field.name in decoded
            else _array(taken[field.name], rows, field.type)
            if field.name in taken
            else self._repeated(field, rows)
            for field in self._schema
        ]
        del self._ranges[:-1]
        for one in self._ranges:
            one.first = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _decoded(self, decoder: ColumnDecoder, taken: Taken, rows: int) -> dict[str, pa.Array]:
        """The column of values, and the one of those that do not fit."""
        import pyarrow as pa

        stored: list[bytes | None] = _array(taken["value"], rows, pa.binary()).to_pylist()
        versions: list[int | None] = []
        if self._values.by_version:
            versions = _array(taken[_VERSION], rows, pa.int64()).to_pylist()
        keys: list[bytes | None] = []
        if self._values.by_key:
            keys = _array(taken[_KEY], rows, pa.binary()).to_pylist()
        found = decoder.decoded(stored, versions, keys)
        options = self._values.options
        if found.misfits and not options.permissive:
            number, reason = next(iter(found.misfits.items()))
            raise ValueMismatchError(f"{self._place(taken, rows, number)} does not fit: {reason}")
        return {"value": found.column, options.corrupt: corrupt_column(stored, found.misfits)}

    def _place(self, taken: Taken, rows: int, number: int) -> str:
        """Which message a row is, for people."""
        import pyarrow as pa

        entry, place = (
            _array(taken[name], rows, kind)[number]
            for name, kind in (("entry_id", pa.int64()), ("batch_index", pa.int32()))
        )
        of = [one for one in self._ranges if one.first <= number][-1]
        return (
            f"{of.topic}, partition {of.partition}: the value of message {place} of entry "
            f"{of.ledger_id}:{entry}"
        )

    def _repeated(self, field: pa.Field, rows: int) -> pa.Array:
        """The values of a column that the rows of a range share."""
        import pyarrow as pa

        ends = [*(one.first for one in self._ranges[1:]), rows]
        parts = [
            pa.repeat(pa.scalar(getattr(one, field.name), type=field.type), end - one.first)
            for one, end in zip(self._ranges, ends, strict=False)  # without ranges, one end more
        ]
        return pa.concat_arrays(parts) if parts else pa.array([], type=field.type)


def _array(column: list[Any] | Buffers | HeaderBuffers, rows: int, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, list):
        return pa.array(column, type=kind)
    if isinstance(column, Buffers):
        return _array_of(column, rows, kind)
    names, values = column.names, column.values
    pair = kind.value_type
    pairs = len(names.ends or b"") // 4 - 1
    children = [
        _array_of(names, pairs, pair.field(0).type),
        _array_of(values, pairs, pair.field(1).type),
    ]
    inside = pa.StructArray.from_arrays(children, fields=[pair.field(0), pair.field(1)])
    return pa.Array.from_buffers(
        kind, rows, [None, pa.py_buffer(column.ends)], null_count=0, children=[inside]
    )


def _array_of(column: Buffers, rows: int, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    buffers = [None if column.valid is None else pa.py_buffer(column.valid)]
    if column.ends is not None:
        buffers.append(pa.py_buffer(column.ends))
    buffers.append(pa.py_buffer(column.values))
    return pa.Array.from_buffers(kind, rows, buffers, null_count=column.nulls)
