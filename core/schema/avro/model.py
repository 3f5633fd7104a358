"""The parsed form of a schema of Avro. Pure.

Types refer to each other and may contain themselves, so they are compared by identity. Only the
parser changes them: a name may be used before its definition, and is filled in by it.
"""

from __future__ import annotations

from typing import Any, Final

from magnetar.core.kernel.errors import IncompatibleSchema

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
NAMED: Final = frozenset({"record", "enum", "fixed"})
NO_DEFAULT: Final = object()
"""The default of a field without one; null is one."""
STEPS_MAX: Final = 50_000
"""Types, or pairs of them, that one comparison looks at."""
DEPTH_MAX: Final = 150
"""How deep it follows types into types; a level takes four of Python's frames at most."""


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


class Effort:
    """How much longer a comparison may take, and how deep it may go: no schema holds up the server.

    Types that refer to each other in a long chain are as deep as the chain, however flat they are
    written, and pairs of types may be more than the types of both schemas.
    """

    __slots__ = ("_depth", "_steps")

    def __init__(self, steps_max: int = STEPS_MAX, depth_max: int = DEPTH_MAX) -> None:
        self._steps = steps_max
        self._depth = depth_max

    def __enter__(self) -> None:
        """Go one type deeper."""
        self._steps -= 1
        self._depth -= 1
        if self._steps < 0:
            raise IncompatibleSchema("the schema is too large to be compared")
        if self._depth < 0:
            raise IncompatibleSchema("types of the schema refer to each other in too many steps")

    def __exit__(self, *_error: object) -> None:
        self._depth += 1
