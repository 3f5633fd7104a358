"""Schemas of Avro as Spark's types, and the types of Arrow's that they stand for. Read by the same
parser as those of topics (`core/schema/avro/parser.py`).

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

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Struct

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro import parser
from magnetar.core.schema.avro.model import NO_DEFAULT, AvroNode
from magnetar.spark_connector.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

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
TYPES_MAX: Final = parser.TYPES_MAX
"""A type that is named in many places is as many of Spark's, each with all that is in it."""
DEPTH_MAX: Final = parser.DEPTH_MAX
"""Types in types: named ones may be defined beside each other, and be as deep as they are many."""


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
        node = parser.parse(text.encode(errors="surrogatepass"), objects_as_types=True)
    except IncompatibleSchema as error:
        raise OptionError(f"the Avro schema: {error}") from error
    made = _TypeMaker().type_of(node)
    if made.kind == "null":
        raise OptionError("the Avro schema is null alone: no value takes any bytes")
    if _size(made, {}) > TYPES_MAX:
        raise OptionError(f"the Avro schema has more than {TYPES_MAX} types, as Spark counts them")
    return made


def _size(avro: AvroType, known: dict[int, int]) -> int:
    """How many types there are, with those inside each; of objects that are `known` it is."""
    found = known.get(id(avro))
    if found is None:
        found = known[id(avro)] = 1 + sum(_size(part, known) for part in avro.parts)
    return found


class _TypeMaker:
    """Makes Spark's types of one schema, as far as it has them."""

    def __init__(self) -> None:
        self._made: dict[AvroNode, AvroType | None] = {}
        """None while a type is being made. A type that is named in many places is one object."""
        self._depth = 0

    def type_of(self, node: AvroNode) -> AvroType:
        """A type, or a part of one."""
        if node in self._made:
            found = self._made[node]
            if found is None:
                name = node.full_name
                raise OptionError(
                    f'the Avro type "{name}" has itself in it: Spark has no such type'
                )
            return found
        if self._depth == DEPTH_MAX:
            raise OptionError(f"the Avro schema has types in types, more than {DEPTH_MAX} deep")
        self._made[node] = None
        self._depth += 1
        made = self._made[node] = _with_logical(_MAKERS.get(node.kind, _plain)(self, node), node)
        self._depth -= 1
        return made

    def part(self, node: AvroNode, inside: str) -> AvroType:
        """A type inside another one, which takes a byte at least."""
        found = self.type_of(node)
        if found.kind == "null":
            raise OptionError(f"null alone has no values, in the Avro {inside}")
        return found


def _plain(_: _TypeMaker, node: AvroNode) -> AvroType:
    return AvroType(node.kind)


def _container(maker: _TypeMaker, node: AvroNode) -> AvroType:
    return AvroType(node.kind, (maker.part(node.parts[0], node.kind),))


def _union(maker: _TypeMaker, node: AvroNode) -> AvroType:
    parts = tuple(map(maker.type_of, node.parts))
    if all(one.kind == "null" for one in parts):
        raise OptionError("this is no union of Avro with values: null alone")
    return AvroType("union", parts)


def _record(maker: _TypeMaker, node: AvroNode) -> AvroType:
    inside = f'record "{node.full_name}"'
    if not node.fields:
        raise OptionError(f"the Avro {inside} has no fields")
    fields = node.fields.values()
    parts = tuple(maker.part(field.type, inside) for field in fields)
    about = tuple(
        AvroField(field.aliases, UNSET if field.default is NO_DEFAULT else field.default)
        for field in fields
    )
    return AvroType("record", parts, tuple(node.fields), fields=about, name=node.full_name)


def _enum(_: _TypeMaker, node: AvroNode) -> AvroType:
    default = UNSET if node.default_symbol is None else node.default_symbol
    return AvroType("enum", names=node.symbols, default=default, name=node.full_name)


def _fixed(_: _TypeMaker, node: AvroNode) -> AvroType:
    if not node.size:
        raise OptionError(f'the Avro type "{node.full_name}" has no size')
    return AvroType("fixed", size=node.size, name=node.full_name)


_MAKERS: Final[Mapping[str, Callable[[_TypeMaker, AvroNode], AvroType]]] = {
    "array": _container,
    "map": _container,
    "union": _union,
    "record": _record,
    "enum": _enum,
    "fixed": _fixed,
}


def _with_logical(plain: AvroType, node: AvroNode) -> AvroType:
    """The type, if its logical type is one that is known and makes sense: else, as Avro has it, the
    plain one.
    """
    said = node.properties
    logical = said.get("logicalType")
    if not isinstance(logical, str) or plain.kind not in LOGICAL.get(logical, ()):
        return plain
    precision, scale = said.get("precision", 0), said.get("scale", 0)
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
