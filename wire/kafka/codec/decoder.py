"""Generates decoders: the source of a function for one version of a message, compiled.

Theory. A version of a message has a fixed list of fields, so everything that depends on the
declaration is decided at generation: adjacent fields of fixed size become one `struct` call, an
array becomes an inline loop, and fields of other versions cost nothing. The result is close to
handwritten code; `source_of` shows it. Each function here adds the lines that read one item, and
returns the variable or expression of its value.

Invariants: a decoder reads nothing past `data`, raises nothing but `WireError`, makes no array with
more elements than bytes are left, and reads no byte twice, so that its time and memory are bounded
by the size of the message. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from magnetar.wire.kafka.codec.declare import Field, FieldType, Message
from magnetar.wire.kafka.codec.source import (
    INDENT,
    Source,
    codes,
    element_of,
    is_fixed,
    of_version,
    runs,
    size_code,
)

READ: Final = {
    "string": "data[at:at + size].decode()",
    "bytes": "data[at:at + size]",
    "pieces": "data[at:at + size]",
    "view": "memoryview(data)[at:at + size]",
}
"""The lines that read bytes of known size, by type."""

Decode = Callable[[bytes, int], tuple[Any, int]]
"""Takes bytes and an offset; returns the value, and the offset after it."""


@cache
def decoder(message: type[Message], version: int, flexible: bool) -> Decode:
    """The function that reads this version of a message."""
    return _source(message, version, flexible).compiled("decode")


def source_of(message: type[Message], version: int, flexible: bool) -> str:
    """The generated source, for reading and debugging."""
    return "\n".join(_source(message, version, flexible).lines)


def _source(message: type[Message], version: int, flexible: bool) -> Source:
    source = Source(version, flexible)
    source.add(0, "def decode(data, at):")
    source.add(1, "end = len(data)", "try:")
    value = _message(source, 2, message)
    source.add(2, f"return {value}, at")
    source.add(1, "except (struct.error, IndexError, UnicodeDecodeError) as error:")
    source.add(2, f"raise WireError(f'{message.__name__} v{version}: {{error}}') from error")
    return source


def _message(source: Source, depth: int, message: type[Message]) -> str:
    plain, tagged = of_version(message, source.version)
    values: dict[str, str] = {}
    for fixed, run in runs(plain):
        if fixed:
            values |= _run(source, depth, run)
        else:
            values |= {field.name: _field(source, depth, field) for field in run}
    if source.flexible:
        values |= _tags(source, depth, tagged)
    given = ", ".join(f"{name}={value}" for name, value in values.items())
    return f"{source.of_class(message)}({given})"


def _run(source: Source, depth: int, run: list[Field]) -> dict[str, str]:
    """Read adjacent fields of fixed size."""
    name, size = source.layout(codes(run), "unpack_from")
    values = {field.name: source.local(field.name) for field in run}
    source.add(depth, f"{', '.join(values.values())}, = {name}(data, at)", f"at += {size}")
    return values


def _field(source: Source, depth: int, field: Field) -> str:
    if is_fixed(field):
        return _run(source, depth, [field])[field.name]
    value = source.local(field.name)
    if field.array:
        inside = _sized(source, depth, field, value)
        _elements(source, inside, field, value)
    elif isinstance(field.kind, FieldType):
        inside = _sized(source, depth, field, value)
        source.add(inside, f"{value} = {READ[field.kind.name]}", "at += size")
    else:
        _structure(source, depth, field.kind, value, null=_has_null_mark(source, field))
    return value


def _sized(source: Source, depth: int, field: Field, value: str) -> int:
    """Read a size of bytes or elements, and handle null; returns the indentation to go on with."""
    if source.flexible:
        source.add(depth, "size = data[at] - 1", "at += 1", "if size > 126:")
        source.add(depth + 1, "size, at = reader.varint(data, at - 1)", "size -= 1")
    else:
        name, width = source.layout(size_code(field), "unpack_from")
        source.add(depth, f"size, = {name}(data, at)", f"at += {width}")
    source.add(depth, "if size > end - at:", f"{INDENT}raise reader.beyond({field.name!r})")
    source.add(depth, "if size < 0:")
    if field.may_be_null(source.version):
        source.add(depth + 1, f"{value} = None")
    else:
        source.add(depth + 1, f"raise reader.missing({field.name!r})")
    source.add(depth, "else:")
    return depth + 1


def _elements(source: Source, depth: int, field: Field, value: str) -> None:
    if isinstance(field.kind, FieldType) and len(field.kind.layout) == 1:
        width = struct.calcsize(">" + field.kind.layout)
        layout = f"f'>{{size}}{field.kind.layout}'"
        source.add(depth, f"{value} = list(struct.unpack_from({layout}, data, at))")
        source.add(depth, f"at += {width} * size")
        return
    source.add(depth, f"{value} = []", "for _ in range(size):")
    element = element_of(field)
    if isinstance(element.kind, FieldType):
        item = _field(source, depth + 1, element)
    else:
        item = _message(source, depth + 1, element.kind)
    source.add(depth + 1, f"{value}.append({item})")


def _has_null_mark(source: Source, field: Field) -> bool:
    """Whether a byte says if the structure is present; a tagged one is left out if absent."""
    return field.may_be_null(source.version) and field.tag is None


def _structure(source: Source, depth: int, kind: type[Message], value: str, *, null: bool) -> None:
    if null:
        mark, _ = source.layout("b", "unpack_from")
        source.add(depth, f"{value}, = {mark}(data, at)", "at += 1", f"if {value} < 0:")
        source.add(depth + 1, f"{value} = None")
        source.add(depth, "else:")
        depth += 1
    source.add(depth, f"{value} = {_message(source, depth, kind)}")


def _tags(source: Source, depth: int, tagged: list[Field]) -> dict[str, str]:
    """Read the tagged fields at the end of a structure; unknown ones are skipped (KIP-482)."""
    values = {field.name: source.local(field.name) for field in tagged}
    for field in tagged:
        source.add(depth, f"{values[field.name]} = {field.default!r}")
    source.add(depth, "if data[at] == 0:", f"{INDENT}at += 1", "else:")
    depth += 1
    if not tagged:
        source.add(depth, "at = reader.skip_tags(data, at)")
        return values
    number, stop, count = (source.local(name) for name in ("number", "stop", "count"))
    source.add(depth, f"{count}, at = reader.varint(data, at)", f"for _ in range({count}):")
    depth += 1
    source.add(depth, f"{number}, at, {stop} = reader.tag(data, at)")
    keyword = "if"
    for field in tagged:
        source.add(depth, f"{keyword} {number} == {field.tag}:")
        found = _field(source, depth + 1, field)
        source.add(depth + 1, f"{values[field.name]} = {found}")
        # Otherwise a thousand empty fields could each make us read the same following bytes.
        source.add(depth + 1, f"if at != {stop}:", f"{INDENT}raise reader.beyond({field.name!r})")
        keyword = "elif"
    source.add(depth, f"at = {stop}")
    return values
