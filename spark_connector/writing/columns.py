"""The columns that can be written, and the rows of Arrow batches.

value, key    string or binary; a value of null deletes its key from a compacted topic
topic         string; else the option
partition     a whole number; else by the key
headers       array of (key string, value binary)
event_time    timestamp, the record's; else the time at which it is sent
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magnetar.spark_connector.errors import ConnectorError
from magnetar.spark_connector.writing.options import topic_of

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT: Final = ("string", "binary")
_HEADERS: Final = (
    "array<struct<key:string,value:binary>>",
    "array<struct<key:string,value:string>>",
)
TYPES: Final = {
    "value": _TEXT,
    "key": _TEXT,
    "topic": ("string",),
    "partition": ("int", "bigint", "smallint", "tinyint"),
    "headers": _HEADERS,
    "event_time": ("timestamp", "timestamp_ntz"),
}
"""Spark's names of the types that each column may have."""
UNWRITABLE: Final = ("ordering_key", "deliver_at")
"""What only Pulsar's messages have."""
Headers = list[tuple[bytes, bytes | None]]
_US_PER_MS: Final = 1_000


class SchemaError(ConnectorError):
    """The columns are not those of a sink."""


class SinkRow(NamedTuple):
    """One message, its topic by the full name. A partition of None is to be chosen."""

    value: bytes | None
    key: bytes | None
    topic: str
    partition: int | None
    headers: Headers
    time_ms: int | None


_TOPIC: Final = SinkRow._fields.index("topic")


def check(schema: Sequence[tuple[str, str]], topic: str) -> None:
    """Raise `SchemaError` unless columns of these names and types can be written. `topic` is the
    option.
    """
    names = [name for name, _ in schema]
    for name, given in schema:
        if name in UNWRITABLE:
            raise SchemaError(
                f'column "{name}" cannot be written: messages are sent as Kafka\'s records, which '
                "have none; send such messages by a Pulsar client"
            )
        if name not in TYPES:
            raise SchemaError(_unknown(name, names))
        if not _is_one_of(given, TYPES[name]):
            raise SchemaError(f'column "{name}" is {given}, not {" or ".join(TYPES[name])}')
    if "value" not in names:
        raise SchemaError('column "value" is missing' + _made_of_others(names))
    if "topic" not in names and not topic:
        raise SchemaError('there is neither a column nor an option "topic"')


def _is_one_of(given: str, types: Sequence[str]) -> bool:
    given = given.replace(" ", "").lower()
    return given in types or ("string" in types and given.startswith("stringcollate"))


def _unknown(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), [one for one in TYPES if one not in names], 1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    if not near and "value" not in names:
        hint = _made_of_others(names)
    elif not near:
        hint = f"; a sink has {', '.join(TYPES)}: select these"
    return f'there is no column "{name}" in a sink{hint}'


def _made_of_others(names: Sequence[str]) -> str:
    others = ", ".join(name for name in names if name not in TYPES)
    return f"; make it of the others: to_json(struct({others})) AS value" if others else ""


def rows(batch: pa.RecordBatch, topic: str) -> Iterator[SinkRow]:
    """The rows of an Arrow batch; `topic` is the option."""
    import pyarrow as pa

    columns: list[Sequence[Any]] = []
    for name in SinkRow._fields:
        place = batch.schema.get_field_index("event_time" if name == "time_ms" else name)
        if place < 0:
            columns.append([_ABSENT.get(name)] * batch.num_rows)
        else:
            columns.append(_READ[name](batch.column(place), pa))
    columns[_TOPIC] = [topic_of(one) if one else _default(topic) for one in columns[_TOPIC]]
    return map(SinkRow._make, zip(*columns, strict=True))


def _default(topic: str) -> str:
    """Where a row goes that has no topic of its own."""
    if not topic:
        raise SchemaError('column "topic" is null in a row, and there is no option "topic"')
    return topic


def _bytes(column: Any, pa: Any) -> list[bytes | None]:
    found: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return found


def _plain(column: Any, _pa: Any) -> list[Any]:
    found: list[Any] = column.to_pylist()
    return found


def _times(column: Any, pa: Any) -> list[int | None]:
    found = column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    if any(us is not None and us < 0 for us in found):
        raise SchemaError('column "event_time" has a time before 1970: records cannot have it')
    return [None if us is None else us // _US_PER_MS for us in found]


def _headers(column: Any, _pa: Any) -> list[Headers]:
    return [[_header(each) for each in one or ()] for one in column.to_pylist()]


def _header(one: dict[str, Any] | None) -> tuple[bytes, bytes | None]:
    if one is None or one["key"] is None:
        raise SchemaError('a header has no key: column "headers"')
    key, value = one["key"], one["value"]
    return key.encode(), value.encode() if isinstance(value, str) else value


_ABSENT: Final[dict[str, Any]] = {"headers": []}
_READ: Final[dict[str, Callable[[Any, Any], Sequence[Any]]]] = {
    "value": _bytes,
    "key": _bytes,
    "topic": _plain,
    "partition": _plain,
    "headers": _headers,
    "time_ms": _times,
}
