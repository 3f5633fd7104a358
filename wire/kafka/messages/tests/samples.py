"""Two messages of every version: one that says all it can, and one with nulls and no tags."""

from typing import Any

from magnetar.wire.kafka.codec.declare import Field, FieldType, Message, fields_of

PLAIN = {
    "bool": True,
    "int8": 1,
    "int16": 2,
    "uint16": 40_000,
    "int32": 3,
    "int64": 4,
    "float64": 1.5,
    "uuid": bytes(range(16)),
    "string": "té",
    "bytes": b"\x00\xff",
    "view": b"\x00\xff",
    "pieces": b"\x00\xff",
}


def full(message: type[Message], version: int) -> Any:
    """Two elements in every array, no nulls, all tags."""
    return _sample(message, version, nulls=False)


def sparse(message: type[Message], version: int) -> Any:
    """Two elements in every array, null wherever it may be, no tags."""
    return _sample(message, version, nulls=True)


def _sample(message: type[Message], version: int, *, nulls: bool) -> Any:
    there = [field for field in fields_of(message) if field.is_in(version)]
    if nulls:
        there = [field for field in there if field.tag is None]
    return message(**{field.name: _value(field, version, nulls=nulls) for field in there})


def _value(field: Field, version: int, *, nulls: bool) -> Any:
    if nulls and field.may_be_null(version):
        return None
    if isinstance(field.kind, FieldType):
        one = PLAIN[field.kind.name]
    else:
        one = _sample(field.kind, version, nulls=nulls)
    return [one, one] if field.array else one
