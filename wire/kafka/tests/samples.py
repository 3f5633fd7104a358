"""One message of every kind with something in every field: two elements, no nulls, all tags."""

from typing import Any

from wire.kafka.codec.declare import Field, Kind, Message, fields_of

PLAIN = {
    "bool": True,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "uuid": bytes(range(16)),
    "string": "té",
    "bytes": b"\x00\xff",
}


def sample(message: type[Message], version: int) -> Any:
    there = [field for field in fields_of(message) if field.is_in(version)]
    return message(**{field.name: _value(field, version) for field in there})


def _value(field: Field, version: int) -> Any:
    plain = isinstance(field.kind, Kind)
    one = PLAIN[field.kind.name] if plain else sample(field.kind, version)
    return [one, one] if field.array else one
