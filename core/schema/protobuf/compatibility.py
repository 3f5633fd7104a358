"""Whether messages of one schema in protobuf are read by another. Pure.

The verdicts are those of Confluent's registry (`protobuf/diff` of its `protobuf-provider`), after
protobuf's own rules for updating a message:

    of the new schema     is compatible if
    the package           it is the same
    a message             it is still there, wherever
    a field               its number has the same kind of type, whatever its name:
                          int32, int64, uint32, uint64, bool and enums are one kind; sint32 and
                          sint64; string and bytes; fixed32 and sfixed32; fixed64 and sfixed64
    a required field      it was there, and required; it stays
    a repeated field      it was repeated, unless it is no number: those are packed
    a oneof               it takes at most one field that was outside, and none beside those that
                          it had; its fields stay somewhere
    an enum               whatever becomes of it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from magnetar.core.schema.definitions import shown
from magnetar.core.schema.protobuf.reader import LABELS, SCALARS, ProtobufFile
from magnetar.core.schema.protobuf.writer import declared, is_map, message_of

NUMBERS: Final = ("int32", "int64", "uint32", "uint64", "bool")
ALIKE: Final = (
    *(NUMBERS, ("sint32", "sint64"), ("string", "bytes")),
    *(("fixed32", "sfixed32"), ("fixed64", "sfixed64"), ("float",), ("double",)),
)
KIND_OF: Final = {SCALARS[name]: names[0] for names in ALIKE for name in names}
"""The first name of those that are read alike, by the type."""
REQUIRED, REPEATED = LABELS["required"], LABELS["repeated"]
UNPACKED: Final = frozenset({"string", "message", "map"})

Fields = dict[int, FieldDescriptor]


def incompatibility(old: ProtobufFile, new: ProtobufFile) -> str:
    """Why the new schema may not read what the old one wrote, or nothing."""
    if old.file.package != new.file.package:
        return f"package {shown(old.file.package)} became {shown(new.file.package)}"
    return _types(old.file.message_types_by_name, new.file.message_types_by_name)


def _types(old: Mapping[str, Descriptor], new: Mapping[str, Descriptor]) -> str:
    for name, before in old.items():
        after = new.get(name)
        if after is None and not before.GetOptions().map_entry:
            return f"message {shown(before.full_name)} was removed"
        if after is not None:
            reason = _messages(before, after)
            if reason:
                return f"{shown(before.full_name)}: {reason}"
    return ""


def _messages(old: Descriptor, new: Descriptor) -> str:
    had, has = _Membership(old), _Membership(new)
    return (
        _oneofs(had, has)
        or _required(had, has)
        or _fields(had, has)
        or _types(old.nested_types_by_name, new.nested_types_by_name)
    )


class _Membership:
    """The fields of a message, and which of them are in a oneof."""

    def __init__(self, message: Descriptor) -> None:
        said = declared(message)
        self.every: Fields = {each.number: each for each in message.fields}
        self.required = {number for number, each in said.items() if each.label == REQUIRED}
        self.repeated = {number for number, each in said.items() if each.label == REPEATED}
        self.oneofs: dict[str, set[int]] = {}
        self.outside: set[int] = set()
        for number, field in self.every.items():
            if field.containing_oneof is None or said[number].proto3_optional:
                self.outside.add(number)
            else:
                self.oneofs.setdefault(field.containing_oneof.name, set()).add(number)
        self.inside: set[int] = set().union(*self.oneofs.values())


def _oneofs(had: _Membership, has: _Membership) -> str:
    for name, numbers in has.oneofs.items():
        moved, stayed = len(numbers & had.outside), len(numbers & had.inside)
        if moved > 1:
            return f"oneof {shown(name)} has several fields that were outside"
        if moved and stayed:
            return f"oneof {shown(name)} has a field that was outside, beside those that it had"
    for name in had.oneofs.keys() & has.oneofs.keys():
        lost = had.oneofs[name] - has.every.keys()
        if lost:
            return f"oneof {shown(name)} has lost field {min(lost)}"
    return ""


def _required(had: _Membership, has: _Membership) -> str:
    for number in sorted(had.required - has.every.keys()):
        return f"field {number}, which is required, was removed"
    for number in sorted(has.required - had.every.keys()):
        return f"field {number}, which is required, was added"
    return ""


def _fields(had: _Membership, has: _Membership) -> str:
    for number in sorted(had.every.keys() & has.every.keys()):
        before, after = had.every[number], has.every[number]
        reason = _field(before, after)
        is_packed = _kind(after) not in UNPACKED
        if not reason and is_packed and (number in had.repeated) is not (number in has.repeated):
            reason = "a number became repeated, or is it no more"
        if reason:
            return f"field {number}: {reason}"
    return ""


def _field(old: FieldDescriptor, new: FieldDescriptor) -> str:
    before, after = _kind(old), _kind(new)
    if before != after:
        return f"{before} became {after}"
    if after == "map":
        for part in ("key", "value"):
            reason = _field(*(message_of(each).fields_by_name[part] for each in (old, new)))
            if reason:
                return f"the {part} of the map: {reason}"
        return ""
    if after == "message" and _local_name(old) != _local_name(new):
        return f"{shown(_local_name(old))} became {shown(_local_name(new))}"
    return ""


def _kind(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return NUMBERS[0]
    if field.message_type is not None:
        return "map" if is_map(field) else "message"
    return KIND_OF[field.type]


def _local_name(field: FieldDescriptor) -> str:
    """The name of its message, without the package."""
    message = message_of(field)
    package = f"{message.file.package}."
    return str(message.full_name).removeprefix(package)
