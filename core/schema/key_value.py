"""A schema of pairs: the schemas of key and value in one. Pure.

The definition is that of the key behind its length (four bytes, big-endian; -1 for none), then that
of the value. Their kinds and properties are properties of the whole (`KeyValueSchemaInfo.java`
of Pulsar 4.2). Tools write `{"key": ..., "value": ...}` instead, with the definitions' own JSON,
and `""` for a kind without a definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct as Layout
from typing import Any, Final

import msgspec

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.schema import DEFINED_IN_AVRO, NO_PROPERTIES, SchemaKind, TopicSchema

LENGTH: Final = Layout(">i")
NOT_A_PAIR: Final = "the definition is none of key and value"
HALVES: Final = ("key", "value")
ENCODING: Final = "kv.encoding.type"
INLINE: Final = "INLINE"


def halves(schema: TopicSchema) -> tuple[TopicSchema, TopicSchema]:
    """The schemas of key and value."""
    key, rest = _cut(schema.definition)
    value, rest = _cut(rest)
    if rest:
        raise IncompatibleSchema(NOT_A_PAIR)
    return _half(schema, "key", key), _half(schema, "value", value)


def written_form(schema: TopicSchema) -> str:
    """How a pair is written, beside its definition: the kinds of both, and whether the key is in
    front of the value or apart from it.
    """
    kinds = (half.kind.name for half in halves(schema))
    return " ".join((*kinds, schema.properties.get(ENCODING, INLINE)))


def _cut(definition: bytes) -> tuple[bytes, bytes]:
    if len(definition) < LENGTH.size:
        raise IncompatibleSchema(NOT_A_PAIR)
    (size,) = LENGTH.unpack_from(definition)
    end = LENGTH.size + max(size, 0)
    if size < -1 or end > len(definition):
        raise IncompatibleSchema(NOT_A_PAIR)
    return definition[LENGTH.size : end], definition[end:]


def _half(schema: TopicSchema, which: str, definition: bytes) -> TopicSchema:
    name = schema.properties.get(f"{which}.schema.type", SchemaKind.BYTES.name)
    if name not in SchemaKind.__members__:
        raise IncompatibleSchema(f"the {which} is of an unknown kind of schema")
    kind = SchemaKind[name]
    if kind is SchemaKind.KEY_VALUE:
        raise IncompatibleSchema(f"the {which} is a pair itself")
    return TopicSchema(kind, definition, _properties(schema, which))


def _properties(schema: TopicSchema, which: str) -> Mapping[str, str]:
    text = schema.properties.get(f"{which}.schema.properties")
    if not text:
        return NO_PROPERTIES
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise IncompatibleSchema(f"the properties of the {which} are no JSON of texts") from error


def joined(key: bytes, value: bytes) -> bytes:
    """The definition of a pair."""
    return LENGTH.pack(len(key)) + key + LENGTH.pack(len(value)) + value


# -- as tools write it ---------------------------------------------------------------------------


def to_json(schema: TopicSchema) -> str:
    """The definition as tools show it."""
    shown = {which: _shown(half) for which, half in zip(HALVES, halves(schema), strict=True)}
    return msgspec.json.encode(shown).decode()


def _shown(half: TopicSchema) -> Any:
    if half.kind not in DEFINED_IN_AVRO and half.kind is not SchemaKind.PROTOBUF_NATIVE:
        return ""
    return msgspec.Raw(half.definition)  # checked before it was stored


def from_json(text: str) -> bytes:
    """The definition that tools have written; raises `IncompatibleSchema` for what is none."""
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise IncompatibleSchema(f"the schema of a pair is no JSON: {error}") from error
    if not set(HALVES) <= set(found):
        raise IncompatibleSchema('the schema of a pair has a "key" and a "value"')
    return joined(*(_written(found[which]) for which in HALVES))


def _written(half: Any) -> bytes:
    return b"" if half == "" else msgspec.json.encode(half)
