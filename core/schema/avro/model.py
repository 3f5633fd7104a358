"""The parsed form of a schema of Avro. Pure.

Types refer to each other and may contain themselves, so they are compared by identity. Only the
parser changes them: a name may be used before its definition, and is filled in by it.
"""

from __future__ import annotations

from typing import Any, Final

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
NAMED: Final = frozenset({"record", "enum", "fixed"})
NO_DEFAULT: Final = object()
"""The default of a field without one; null is one."""


class AvroNode:
    """A type."""

    __slots__ = (
        "aliases",
        "default_symbol",
        "fields",
        "full_name",
        "kind",
        "parts",
        "properties",
        "size",
        "symbols",
    )

    def __init__(self, kind: str, parts: tuple[AvroNode, ...] = ()) -> None:
        self.kind = kind
        self.parts = parts
        """Branches of a union; what an array or a map has."""
        self.full_name = kind
        """The kind of a type without a name."""
        self.aliases: tuple[str, ...] = ()
        self.fields: dict[str, AvroField] = {}
        self.symbols: tuple[str, ...] = ()
        self.default_symbol: str | None = None
        self.size = 0
        self.properties: dict[str, Any] = {}
        """What the specification does not define, and logical types."""

    @property
    def name(self) -> str:
        """Without its namespace."""
        return self.full_name.rpartition(".")[2]


class AvroField:
    """A field of a record."""

    __slots__ = ("aliases", "default", "name", "order", "properties", "type")

    def __init__(self, name: str, kind: AvroNode) -> None:
        self.name = name
        self.type = kind
        self.default: Any = NO_DEFAULT
        self.aliases: tuple[str, ...] = ()
        self.order = "ascending"
        self.properties: dict[str, Any] = {}
