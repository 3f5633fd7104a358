"""Declarations of messages: a class with its fields in wire order, and the versions of each.

    class FetchPartition(Message):
        partition: Int32
        current_leader_epoch: Annotated[Int32, since(9)] = -1

A field without annotation is in all versions. A field of some versions has a default, which is its
value in the others. `String | None` may be null; `nullable(3)` says since which version, if not
always. Tagged fields (`tagged(0)`) follow all others, and are omitted when they have their default.

`decoder.py` and `encoder.py` read this; all other code needs only the classes. Pure.
"""

from __future__ import annotations

import types
import typing
from functools import cache
from typing import Annotated, Any, ClassVar, Final

import msgspec

LATEST: Final = 32767
NO_UUID: Final = bytes(16)


class FieldType(msgspec.Struct, frozen=True):
    """A primitive type of the protocol."""

    name: str
    layout: str = ""
    """Its `struct` code; empty if its size varies."""


class Since(msgspec.Struct, frozen=True):
    version: int


class Until(msgspec.Struct, frozen=True):
    version: int
    """The last version with the field."""


class Nullable(msgspec.Struct, frozen=True):
    since: int


class Tagged(msgspec.Struct, frozen=True):
    number: int


def since(version: int) -> Since:
    """The field exists from this version on."""
    return Since(version)


def until(version: int) -> Until:
    """The field exists up to this version."""
    return Until(version)


def nullable(version: int) -> Nullable:
    """The field may be null from this version on."""
    return Nullable(version)


def tagged(number: int) -> Tagged:
    """A tagged field with that number (KIP-482)."""
    return Tagged(number)


Bool = Annotated[bool, FieldType("bool", "?")]
Int8 = Annotated[int, FieldType("int8", "b")]
Int16 = Annotated[int, FieldType("int16", "h")]
UInt16 = Annotated[int, FieldType("uint16", "H")]
Int32 = Annotated[int, FieldType("int32", "i")]
Int64 = Annotated[int, FieldType("int64", "q")]
Float64 = Annotated[float, FieldType("float64", "d")]
Uuid = Annotated[bytes, FieldType("uuid", "16s")]
String = Annotated[str, FieldType("string")]
Bytes = Annotated[bytes, FieldType("bytes")]
View = Annotated[bytes | memoryview, FieldType("view")]
"""Bytes that are not copied when they are read, because they may be large."""
Pieces = Annotated[bytes | list[bytes | memoryview], FieldType("pieces")]
"""Bytes that are written in several pieces, for the same reason, and read as one."""


class ByName(msgspec.StructMeta):
    """Makes all fields keyword-only, so that they can be declared in wire order.

    msgspec has `kw_only` for that, but classes do not inherit it.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> ByName:
        return super().__new__(mcs, name, bases, namespace, kw_only=True, **options)


@typing.dataclass_transform(kw_only_default=True)
class Message(msgspec.Struct, metaclass=ByName):
    """A structure of the protocol: a message, or a part of one."""


class Request(Message):
    """A request of a client."""

    KEY: ClassVar[int]
    VERSIONS: ClassVar[tuple[int, int]]
    """The first and the last known version."""
    FLEXIBLE: ClassVar[int] = LATEST
    """The first flexible version: sizes are varints, and structures end with tagged fields."""


class Response(Message):
    """A response; key and versions are those of its request."""


class Field(msgspec.Struct, frozen=True):
    """The declaration of one field."""

    name: str
    kind: FieldType | type[Message]
    array: bool
    since: int
    until: int
    null_since: int | None
    """The first version in which it may be null; None for never."""
    tag: int | None
    default: Any

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def may_be_null(self, version: int) -> bool:
        return self.null_since is not None and version >= self.null_since


@cache
def fields_of(message: type[Message]) -> tuple[Field, ...]:
    """The fields of a class in wire order."""
    hints = typing.get_type_hints(message, include_extras=True)
    defaults = {one.name: one for one in msgspec.structs.fields(message)}
    return tuple(
        _field(name, hints[name], _default(defaults[name])) for name in message.__struct_fields__
    )


def _default(info: msgspec.structs.FieldInfo) -> Any:
    if info.default is not msgspec.NODEFAULT:
        return info.default
    if info.default_factory is not msgspec.NODEFAULT:
        return info.default_factory()
    return msgspec.NODEFAULT


def _field(name: str, hint: Any, default: Any) -> Field:
    hint, marks = _unwrapped(hint)
    if any(isinstance(mark, FieldType) for mark in marks):
        hint = bytes  # alternatives in the annotation do not concern the wire
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if optional:
        (hint,) = [one for one in typing.get_args(hint) if one is not type(None)]
        hint, more = _unwrapped(hint)
        marks += more
    array = typing.get_origin(hint) is list
    if array:
        hint, more = _unwrapped(typing.get_args(hint)[0])
        marks += more
    found = {type(mark): mark for mark in marks}
    null_since = found[Nullable].since if Nullable in found else 0
    return Field(
        name,
        kind=found.get(FieldType, hint),
        array=array,
        since=found[Since].version if Since in found else 0,
        until=found[Until].version if Until in found else LATEST,
        null_since=null_since if optional else None,
        tag=found[Tagged].number if Tagged in found else None,
        default=default,
    )


def _unwrapped(hint: Any) -> tuple[Any, list[Any]]:
    """Split an annotated type into the type and its annotations."""
    if typing.get_origin(hint) is not Annotated:
        return hint, []
    inner, *marks = typing.get_args(hint)
    return inner, marks
