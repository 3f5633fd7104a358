"""Generates encoders: the source of a function for one version of a message, compiled.

The counterpart of `decoder.py`, which explains the theory. An encoder returns pieces, so that
records are not copied only to prepend a few bytes. It trusts its caller: a value that the version
cannot express (an invalid null, a number too large) raises Python's own error. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from magnetar.wire.kafka.codec.declare import Field, FieldType, Message
from magnetar.wire.kafka.codec.source import (
    Source,
    codes,
    element_of,
    is_fixed,
    of_version,
    runs,
    size_code,
)

Encode = Callable[[Any], list[bytes | memoryview]]
"""Takes a value; returns its bytes in pieces, which the sender joins."""


@cache
def encoder(message: type[Message], version: int, flexible: bool) -> Encode:
    """The function that writes this version of a message."""
    return _source(message, version, flexible).compiled("encode")


def source_of(message: type[Message], version: int, flexible: bool) -> str:
    """The generated source, for reading and debugging."""
    return "\n".join(_source(message, version, flexible).lines)


def _source(message: type[Message], version: int, flexible: bool) -> Source:
    source = Source(version, flexible)
    source.add(0, "def encode(value):")
    source.add(1, "out = []", "add = out.append")
    _message(source, 1, message, "value")
    source.add(1, "return out")
    return source


def _message(source: Source, depth: int, message: type[Message], value: str) -> None:
    plain, tagged = of_version(message, source.version)
    for fixed, run in runs(plain):
        if fixed:
            _run(source, depth, run, value)
        else:
            for field in run:
                _field(source, depth, field, f"{value}.{field.name}")
    if source.flexible and tagged:
        _tags(source, depth, tagged, value)
    elif source.flexible:
        source.add(depth, 'add(b"\\0")')


def _run(source: Source, depth: int, run: list[Field], value: str) -> None:
    """Write adjacent fields of fixed size."""
    name, _ = source.layout(codes(run), "pack")
    given = ", ".join(f"{value}.{field.name}" for field in run)
    source.add(depth, f"add({name}({given}))")


def _field(source: Source, depth: int, field: Field, value: str) -> None:
    """Write one field of any type; `value` is the expression of its object."""
    if isinstance(field.kind, FieldType) and is_fixed(field):
        name, _ = source.layout(field.kind.layout, "pack")
        source.add(depth, f"add({name}({value}))")
        return
    given = source.local(field.name)
    source.add(depth, f"{given} = {value}")
    if field.array:
        inside = _null(source, depth, field, given)
        _elements(source, inside, field, given)
    elif isinstance(field.kind, FieldType):
        inside = _null(source, depth, field, given)
        if field.kind.name == "string":
            source.add(inside, f"{given} = {given}.encode()")
        if field.kind.name == "pieces":
            _pieces(source, inside, field, given)
            return
        _size(source, inside, field, given)
        source.add(inside, f"add({given})")
    else:
        _structure(source, depth, field, field.kind, given)


def _pieces(source: Source, depth: int, field: Field, given: str) -> None:
    """Write bytes, or a list of pieces."""
    source.add(depth, f"if type({given}) is list:", f"    size = sum(map(len, {given}))", "else:")
    source.add(depth, f"    size = len({given})", f"    {given} = ({given},)")
    if source.flexible:
        source.add(depth, "add(writer.varint(size + 1))")
    else:
        name, _ = source.layout(size_code(field), "pack")
        source.add(depth, f"add({name}(size))")
    source.add(depth, f"for piece in {given}:", "    add(piece)")


def _null(source: Source, depth: int, field: Field, given: str) -> int:
    """Write null for None if it is valid; returns the indentation for other values."""
    if not field.may_be_null(source.version):
        return depth
    null = b"\0" if source.flexible else struct.pack(">" + size_code(field), -1)
    source.add(depth, f"if {given} is None:")
    source.add(depth + 1, f"add({null!r})")
    source.add(depth, "else:")
    return depth + 1


def _size(source: Source, depth: int, field: Field, given: str) -> None:
    if source.flexible:
        source.add(depth, f"add(writer.varint(len({given}) + 1))")
    else:
        name, _ = source.layout(size_code(field), "pack")
        source.add(depth, f"add({name}(len({given})))")


def _elements(source: Source, depth: int, field: Field, given: str) -> None:
    _size(source, depth, field, given)
    item = source.local("item")
    source.add(depth, f"for {item} in {given}:")
    element = element_of(field)
    if isinstance(element.kind, FieldType):
        _field(source, depth + 1, element, item)
    else:
        _message(source, depth + 1, element.kind, item)


def _structure(source: Source, depth: int, field: Field, kind: type[Message], given: str) -> None:
    if field.may_be_null(source.version) and field.tag is None:
        source.add(depth, f"if {given} is None:", '    add(b"\\xff")', "else:")
        depth += 1
        source.add(depth, 'add(b"\\x01")')
    _message(source, depth, kind, given)


def _tags(source: Source, depth: int, tagged: list[Field], value: str) -> None:
    """Write the tagged fields that differ from their defaults, each into its own list."""
    outer, found = source.local("outer"), source.local("tagged")
    source.add(depth, f"{found} = []", f"{outer} = add")
    for field in tagged:
        inner = source.local("inner")
        source.add(depth, f"if {value}.{field.name} != {field.default!r}:")
        source.add(depth + 1, f"{inner} = []", f"add = {inner}.append")
        _field(source, depth + 1, field, f"{value}.{field.name}")
        source.add(depth + 1, f"{found}.append(({field.tag}, {inner}))")
    source.add(depth, f"add = {outer}", f"add(writer.tags({found}))")
