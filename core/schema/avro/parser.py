"""Reads schemas of Avro from JSON (its specification, 1.12). Pure.

As lenient as Pulsar is: a name may begin with `$`, has letters of any script, and may be used
before it is defined; defaults are not compared with their types
(`StructSchemaDataValidator.java` of 4.2, `Schema.java` of Avro 1.12).

Limits: `TYPES_MAX` types, nested `DEPTH_MAX` deep. Invariant: any bytes give a schema, or
`IncompatibleSchema` with a sentence for their author, in time that is linear in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.model import NO_DEFAULT, PRIMITIVES, AvroField, AvroNode
from magnetar.core.schema.definitions import json_of, shown

TYPES_MAX: Final = 10_000
DEPTH_MAX: Final = 64
RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
RESERVED_OF_ENUM: Final = RESERVED | {"default"}
RESERVED_OF_FIELD: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
ORDERS: Final = ("ascending", "descending", "ignore")

Json = Mapping[str, Any]


def parse(
    definition: bytes, imports: Iterable[bytes] = (), *, objects_as_types: bool = False
) -> AvroNode:
    """The schema that a definition is, which may name the types of those that it imports. With
    `objects_as_types`, the type of an object may be one itself, `{"type": {"type": "int"}}`: Avro
    for Python takes that, Java's does not.
    """
    reader = DefinitionReader(objects_as_types)
    for each in imports:
        reader.type_of(json_of(each), "", DEPTH_MAX)
    made = reader.type_of(json_of(definition), "", DEPTH_MAX)
    reader.finish()
    return made


class DefinitionReader:
    """Reads one definition, with the names that it has."""

    def __init__(self, objects_as_types: bool) -> None:
        self._objects_as_types = objects_as_types
        self._defined: dict[str, AvroNode] = {}
        self._awaited: dict[str, AvroNode] = {}
        """Types whose names are used, and not defined yet."""
        self._unions: list[AvroNode] = []
        self._types = 0

    def finish(self) -> None:
        """Check what can be checked only once every name is defined."""
        for name in self._awaited:
            raise IncompatibleSchema(f"the type {shown(name)} is named and not defined")
        for union in self._unions:
            names = [part.full_name for part in union.parts]
            if any(part.kind == "union" for part in union.parts):
                raise IncompatibleSchema("a union is directly in a union")
            if len(set(names)) < len(names):
                raise IncompatibleSchema(f"a union has a type twice: {shown(names)}")

    def type_of(self, schema: Any, namespace: str, depth: int) -> AvroNode:
        """A definition, or a part of one."""
        self._types += 1
        if self._types > TYPES_MAX:
            raise IncompatibleSchema(f"the definition has more than {TYPES_MAX} types")
        if not depth:
            raise IncompatibleSchema(f"the definition is nested more than {DEPTH_MAX} deep")
        if isinstance(schema, str):
            return self._known(schema, namespace)
        if isinstance(schema, list):
            parts = tuple(self.type_of(each, namespace, depth - 1) for each in schema)
            self._unions.append(union := AvroNode("union", parts))
            return union
        kind = schema.get("type") if isinstance(schema, dict) else None
        if self._objects_as_types and isinstance(kind, dict | list):
            return self.type_of(kind, namespace, depth - 1)
        if not isinstance(schema, dict) or not isinstance(kind, str):
            raise IncompatibleSchema(f"this is no type of Avro: {shown(schema)}")
        return self._object(schema, namespace, depth)

    def _object(self, schema: Json, namespace: str, depth: int) -> AvroNode:
        kind = schema["type"]
        if kind in PRIMITIVES:
            made = AvroNode(kind)
        elif kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            made = AvroNode(kind, (self.type_of(schema.get(part), namespace, depth - 1),))
        elif kind in ("record", "error"):
            return self._record(schema, namespace, depth)
        elif kind == "enum":
            return self._enum(schema, namespace)
        elif kind == "fixed":
            return self._fixed(schema, namespace)
        else:
            return self._known(kind, namespace)
        made.properties = others(schema, RESERVED)
        return made

    # -- names --------------------------------------------------------------------------------

    def _known(self, name: str, namespace: str) -> AvroNode:
        """The type of that name, which may be defined later."""
        if name in PRIMITIVES:
            return AvroNode(name)
        full = full_name(name, namespace)
        found = self._defined.get(full) or self._defined.get(name)
        if found is None:
            found = self._awaited.setdefault(full, AvroNode(""))
        return found

    def _define(self, kind: str, schema: Json, namespace: str) -> AvroNode:
        name = schema.get("name")
        if not isinstance(name, str):
            raise IncompatibleSchema(f"a {kind} has no name: {shown(schema)}")
        own = schema.get("namespace")
        full = full_name(name, own if isinstance(own, str) else namespace)
        check_name(full.rpartition(".")[2])
        if full in self._defined or full in PRIMITIVES:
            raise IncompatibleSchema(f"the type {shown(full)} is defined twice")
        made = self._awaited.pop(full, None) or AvroNode("")
        made.kind, made.full_name = kind, full
        space = space_of(full)
        made.aliases = tuple(full_name(alias, space) for alias in texts(schema, "aliases", ()))
        self._defined[full] = made
        return made

    # -- types with names ---------------------------------------------------------------------

    def _record(self, schema: Json, namespace: str, depth: int) -> AvroNode:
        made = self._define("record", schema, namespace)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise IncompatibleSchema(f"the record {shown(made.full_name)} has no fields")
        for each in fields:
            field = self._field(each, space_of(made.full_name), depth)
            if field.name in made.fields:
                raise IncompatibleSchema(f"the field {shown(field.name)} is there twice")
            made.fields[field.name] = field
        made.properties = others(schema, RESERVED)
        return made

    def _field(self, schema: Any, namespace: str, depth: int) -> AvroField:
        if not isinstance(schema, dict) or not isinstance(schema.get("name"), str):
            raise IncompatibleSchema(f"a field has no name: {shown(schema)}")
        check_name(schema["name"])
        field = AvroField(schema["name"], self.type_of(schema.get("type"), namespace, depth - 1))
        field.default = schema.get("default", NO_DEFAULT)
        field.aliases = texts(schema, "aliases", ())
        order = schema.get("order", field.order)
        if not isinstance(order, str) or order.lower() not in ORDERS:
            raise IncompatibleSchema(f"this is no order of a field: {shown(order)}")
        field.order = order.lower()
        field.properties = others(schema, RESERVED_OF_FIELD)
        return field

    def _enum(self, schema: Json, namespace: str) -> AvroNode:
        made = self._define("enum", schema, namespace)
        made.symbols = texts(schema, "symbols", None)
        for symbol in made.symbols:
            check_name(symbol)
        if len(set(made.symbols)) < len(made.symbols):
            raise IncompatibleSchema(f"the enum {shown(made.full_name)} has a symbol twice")
        default = schema.get("default")
        if default is not None and default not in made.symbols:
            raise IncompatibleSchema(f"{shown(default)} is no symbol of {shown(made.full_name)}")
        made.default_symbol = default
        made.properties = others(schema, RESERVED_OF_ENUM)
        return made

    def _fixed(self, schema: Json, namespace: str) -> AvroNode:
        made = self._define("fixed", schema, namespace)
        size = schema.get("size")
        if type(size) is not int or not 0 <= size < 1 << 31:
            raise IncompatibleSchema(f"the fixed {shown(made.full_name)} has no size")
        made.size = size
        made.properties = others(schema, RESERVED)
        return made


def full_name(name: str, namespace: str) -> str:
    """A name with its namespace; one with dots has its own."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def space_of(full: str) -> str:
    return full.rpartition(".")[0]


def check_name(name: str) -> None:
    """Raise unless it can be a name."""
    plain = name.replace("_", "a").replace("$", "a")
    if not plain or not plain[0].isalpha() or not plain.isalnum():
        raise IncompatibleSchema(f"{shown(name)} cannot be a name in a schema of Avro")


def texts(schema: Json, key: str, absent: tuple[str, ...] | None) -> tuple[str, ...]:
    """A list of texts."""
    found = schema.get(key, absent)
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
        raise IncompatibleSchema(f"{key} must be a list of texts: {shown(schema)}")
    return tuple(found)


def others(schema: Json, reserved: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in reserved}
