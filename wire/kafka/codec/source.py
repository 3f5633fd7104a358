"""The source of a generated function, line by line, and the names that it uses. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Final

import msgspec

from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka.codec import reader, writer
from magnetar.wire.kafka.codec.declare import Field, FieldType, Message, fields_of

INDENT: Final = "    "


class Source:
    """A function for one version: its lines, and the names that it uses."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "struct": struct,
            "WireError": WireError,
            "reader": reader,
            "writer": writer,
        }
        self._locals = 0

    def add(self, depth: int, *lines: str) -> None:
        self.lines += [INDENT * depth + line for line in lines]

    def local(self, prefix: str) -> str:
        """A new unique variable name."""
        self._locals += 1
        return f"{prefix}_{self._locals}"

    def layout(self, codes: str, method: str) -> tuple[str, int]:
        """The name of a `struct` function, and the layout's size."""
        layout = struct.Struct(">" + codes)
        name = f"{method}_{codes.replace('?', 'B1').replace('16s', 'U')}"
        self.names[name] = getattr(layout, method)
        return name, layout.size

    def of_class(self, message: type[Message]) -> str:
        self.names[message.__name__] = message
        return message.__name__

    def compiled(self, name: str) -> Callable[..., Any]:
        namespace = dict(self.names)
        exec(compile("\n".join(self.lines), f"<{name} v{self.version}>", "exec"), namespace)
        made: Callable[..., Any] = namespace[name]
        return made


def of_version(message: type[Message], version: int) -> tuple[list[Field], list[Field]]:
    """The fields of a version: the plain ones, and the tagged ones by number."""
    there = [field for field in fields_of(message) if field.is_in(version)]
    tagged = [(field.tag, field) for field in there if field.tag is not None]
    plain = [field for field in there if field.tag is None]
    return plain, [field for _, field in sorted(tagged, key=lambda pair: pair[0])]


def is_fixed(field: Field) -> bool:
    return isinstance(field.kind, FieldType) and bool(field.kind.layout) and not field.array


def runs(fields: list[Field]) -> Iterator[tuple[bool, list[Field]]]:
    """Group adjacent fields of fixed size."""
    for fixed, group in groupby(fields, is_fixed):
        yield fixed, list(group)


def codes(run: list[Field]) -> str:
    """The `struct` layout of fields of fixed size."""
    return "".join(field.kind.layout for field in run if isinstance(field.kind, FieldType))


def size_code(field: Field) -> str:
    """The `struct` code of a size in versions that are not flexible."""
    text = isinstance(field.kind, FieldType) and field.kind.name == "string" and not field.array
    return "h" if text else "i"


def element_of(field: Field) -> Field:
    """The declaration of an array's element, which is never null."""
    return msgspec.structs.replace(field, array=False, null_since=None)
