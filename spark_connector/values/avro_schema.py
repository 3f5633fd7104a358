"""Schemas of Avro (its specification, 1.12), parsed, and the types of Arrow's that they stand for.

Types are those of Spark's `from_avro` (`SchemaConverters.scala` of 4.3), all nullable:

    null with one other         the other, which can be absent
    int with long, float with double, in a union       the wider one
    any other union             a struct `member0`, `member1`, ..., of which one is there
    enum, uuid                  string
    time-millis, time-micros    int, bigint; so for all logical types that are not known: the plain
    local-timestamp-...         timestamp_ntz

A type that has itself in it has no type in Spark, and is refused by its name. So are those of which
a value takes no bytes (null alone, a record without fields): a short message could have any number
of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Struct

from magnetar.spark_connector.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL: Final = {
    "date": ("int",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
}
"""Logical types, and what they are stored as."""
DECIMAL_DIGITS_MAX: Final = 38
UUID_BYTES: Final = 16


class AvroField(Struct, frozen=True):
    """What a field of a record has beside its type."""

    aliases: tuple[str, ...] = ()
    default: Any = UNSET
    """As JSON has it."""


class AvroType(Struct, frozen=True):
    """One type of a schema."""

    kind: str
    """Avro's name: `record`, `long`, ..."""
    parts: tuple[AvroType, ...] = ()
    """Types of a record's fields, a union's branches, an array's items, a map's values."""
    names: tuple[str, ...] = ()
    """Names of a record's fields, symbols of an enum."""
    size: int = 0
    """Of a fixed."""
    logical: str = ""
    precision: int = 0
    scale: int = 0
    fields: tuple[AvroField, ...] = ()
    """Of a record."""
    default: Any = UNSET
    """Of an enum: the symbol in place of those that a reader has not."""
    name: str = ""
    """Of a record, an enum or a fixed, in full."""


NULL: Final = AvroType("null")


def parse(text: str) -> AvroType:
    """A schema; `OptionError` says what is wrong with it."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise OptionError(f"the Avro schema is no JSON: {error}") from error
    made = SchemaParser().type_of(found, "")
    if made.kind == "null":
        raise OptionError("the Avro schema is null alone: no value takes any bytes")
    return made


class SchemaParser:
    """Parses one schema, with the names that it has defined so far."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}
        """None while a type is being defined."""

    def type_of(self, schema: Any, namespace: str) -> AvroType:
        """A schema, or a part of one."""
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            return AvroType(schema) if schema in PRIMITIVES else self._known(schema, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise OptionError(f"this is no Avro schema: {_shown(schema)}")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.type_of(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(kind, schema, namespace)
        if kind in ("array", "map"):
            return AvroType(
                kind, (self._part(schema, "items" if kind == "array" else "values", namespace),)
            )
        return _with_logical(self.type_of(kind, namespace), schema)

    def _part(self, schema: Mapping[str, Any], name: str, namespace: str) -> AvroType:
        """A type inside another one, which takes a byte at least."""
        if name not in schema:
            raise OptionError(f'the Avro schema has no "{name}" in {_shown(schema)}')
        found = self.type_of(schema[name], namespace)
        if found.kind == "null":
            raise OptionError(f"null alone has no values, in {_shown(schema)}")
        return found

    def _union(self, branches: list[Any], namespace: str) -> AvroType:
        parts = tuple(self.type_of(one, namespace) for one in branches)
        if all(one.kind == "null" for one in parts) or any(one.kind == "union" for one in parts):
            raise OptionError(f"this is no union of Avro: {_shown(branches)}")
        return AvroType("union", parts)

    def _known(self, name: str, namespace: str) -> AvroType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        full = full if full in self._named else name
        if full not in self._named:
            raise OptionError(f'the Avro schema names a type "{name}", and does not define it')
        found = self._named[full]
        if found is None:
            raise OptionError(f'the Avro type "{full}" has itself in it: Spark has no such type')
        return found

    def _definition(self, kind: str, schema: Mapping[str, Any], namespace: str) -> AvroType:
        name = schema.get("name")
        if not isinstance(name, str):
            raise OptionError(f"a type of the Avro schema has no name: {_shown(schema)}")
        if "." in name:
            namespace = name.rpartition(".")[0]
        else:
            namespace = schema.get("namespace", namespace)
            name = f"{namespace}.{name}" if namespace else name
        if name in self._named:
            raise OptionError(f'the Avro schema defines "{name}" twice')
        self._named[name] = None
        if kind in ("record", "error"):
            made = self._record(name, schema, namespace)
        elif kind == "enum":
            symbols = _texts(name, schema, "symbols")
            default = schema.get("default", UNSET)
            made = AvroType("enum", names=symbols, default=default, name=name)
        else:
            made = _with_logical(AvroType("fixed", size=_size(name, schema), name=name), schema)
        self._named[name] = made
        return made

    def _record(self, name: str, schema: Mapping[str, Any], namespace: str) -> AvroType:
        fields = schema.get("fields")
        if not isinstance(fields, list) or not fields:
            raise OptionError(f'the Avro record "{name}" has no fields')
        if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in fields):
            raise OptionError(f'a field of the Avro record "{name}" has no name')
        names = tuple(one["name"] for one in fields)
        parts = tuple(self._part(one, "type", namespace) for one in fields)
        about = tuple(AvroField(_aliases(one), one.get("default", UNSET)) for one in fields)
        return AvroType("record", parts, names, fields=about, name=name)


def _aliases(field: Mapping[str, Any]) -> tuple[str, ...]:
    found = field.get("aliases")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _texts(name: str, schema: Mapping[str, Any], what: str) -> tuple[str, ...]:
    found = schema.get(what)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise OptionError(f'the Avro type "{name}" has no {what}')
    return tuple(found)


def _size(name: str, schema: Mapping[str, Any]) -> int:
    found = schema.get("size")
    if not isinstance(found, int) or found < 1:
        raise OptionError(f'the Avro type "{name}" has no size')
    return found


def _with_logical(plain: AvroType, schema: Mapping[str, Any]) -> AvroType:
    """The type, if its logical type is one that is known and makes sense: else, as Avro has it, the
    plain one.
    """
    logical = schema.get("logicalType")
    if not isinstance(logical, str) or plain.kind not in LOGICAL.get(logical, ()):
        return plain
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if logical == "decimal":
        numbers = isinstance(precision, int) and isinstance(scale, int)
        if not numbers or not 0 <= scale <= precision or precision < 1:
            return plain
        if precision > DECIMAL_DIGITS_MAX:
            raise OptionError(f"an Avro decimal has {precision} digits, and Spark's 38 at most")
        return msgspec.structs.replace(plain, logical=logical, precision=precision, scale=scale)
    if logical == "uuid" and plain.kind == "fixed" and plain.size != UUID_BYTES:
        return plain
    return msgspec.structs.replace(plain, logical=logical)


def without_logical(avro: AvroType) -> AvroType:
    """The type as it is in JSON, where Pulsar's clients write what logical types are stored as."""
    if avro.kind == "union" and len(branches_of(avro)) > 1 and not merged(avro):
        return AvroType("string")  # any of several: its JSON
    parts = tuple(map(without_logical, avro.parts))
    return msgspec.structs.replace(avro, parts=parts, logical="", precision=0, scale=0)


def branches_of(union: AvroType) -> tuple[AvroType, ...]:
    """The branches that have values."""
    return tuple(one for one in union.parts if one.kind != "null")


def merged(union: AvroType) -> str:
    """The kind of which all branches are that have values; empty if they differ."""
    kinds = {one.kind for one in branches_of(union) if not one.logical}
    if len(branches_of(union)) == 2:
        if kinds == {"int", "long"}:
            return "long"
        if kinds == {"float", "double"}:
            return "double"
    return ""


def arrow_type(avro: AvroType) -> pa.DataType:
    """The type of its values, which Spark has too."""
    import pyarrow as pa

    if avro.logical == "decimal":
        return pa.decimal128(avro.precision, avro.scale)
    if avro.logical:
        return _LOGICAL_TYPES[avro.logical]()
    if avro.kind == "record":
        pairs = zip(avro.names, avro.parts, strict=True)
        return pa.struct([pa.field(name, arrow_type(part)) for name, part in pairs])
    if avro.kind == "array":
        return pa.list_(pa.field("element", arrow_type(avro.parts[0])))
    if avro.kind == "map":
        return pa.map_(pa.string(), arrow_type(avro.parts[0]))
    if avro.kind == "union":
        return _union_type(avro)
    return _PLAIN_TYPES[avro.kind]()


def _union_type(union: AvroType) -> pa.DataType:
    import pyarrow as pa

    branches = branches_of(union)
    if len(branches) == 1:
        return arrow_type(branches[0])
    if both := merged(union):
        return _PLAIN_TYPES[both]()
    return pa.struct(
        [pa.field(f"member{number}", arrow_type(one)) for number, one in enumerate(branches)]
    )


def _arrow(name: str, *arguments: Any) -> Any:
    """A type of Arrow's by its name, made when it is asked for: pyarrow is slow to import."""

    def made() -> pa.DataType:
        import pyarrow as pa

        return getattr(pa, name)(*arguments)

    return made


_PLAIN_TYPES: Final = {
    "boolean": _arrow("bool_"),
    "int": _arrow("int32"),
    "long": _arrow("int64"),
    "float": _arrow("float32"),
    "double": _arrow("float64"),
    "bytes": _arrow("binary"),
    "fixed": _arrow("binary"),
    "string": _arrow("string"),
    "enum": _arrow("string"),
}
_LOGICAL_TYPES: Final = {
    "date": _arrow("date32"),
    "timestamp-millis": _arrow("timestamp", "us", "UTC"),
    "timestamp-micros": _arrow("timestamp", "us", "UTC"),
    "local-timestamp-millis": _arrow("timestamp", "us"),
    "local-timestamp-micros": _arrow("timestamp", "us"),
    "uuid": _arrow("string"),
}


def _shown(schema: Any) -> str:
    return msgspec.json.encode(schema)[:200].decode(errors="replace")
