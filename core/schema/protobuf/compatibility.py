"""Whether messages of one schema in protobuf are read by another. Pure.

The verdicts are those of Confluent's registry (`protobuf/diff` of its `protobuf-provider`, 8.5),
after protobuf's own rules for updating a message:

    of the new schema     is compatible if
    the package           it is the same
    a message             it is still there, wherever; one that is imported has the same name
                          without its package, and is compatible itself
    a field               its number has the same kind of type, whatever its name:
                          int32, int64, uint32, uint64, bool and enums are one kind; sint32 and
                          sint64; string and bytes; fixed32 and sfixed32; fixed64 and sfixed64
    a required field      it was there; it stays
    the label of a        it is the same, where both files have one: proto3 needs none
    number or an enum
    a oneof               what it takes was in one oneof before, or is a single field that was
                          outside, or is new; and it loses no field, unless it loses all
    an enum               whatever becomes of it

Invariant: a comparison ends within `Effort`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from magnetar.core.schema.definitions import Effort, shown
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
OF_NUMBERS: Final = frozenset(KIND_OF.values()) - {"string"}

Fields = dict[int, FieldDescriptor]


def incompatibility(old: ProtobufFile, new: ProtobufFile) -> str:
    """Why the new schema may not read what the old one wrote, or nothing."""
    if old.file.package != new.file.package:
        return f"package {shown(old.file.package)} became {shown(new.file.package)}"
    comparison = _FileComparison(old, new)
    return comparison.types(old.file.message_types_by_name, new.file.message_types_by_name)


class _DeclaredFields:
    """The fields of a message by number, and what is said of them beside their types."""

    def __init__(self, message: Descriptor, *, all_have_labels: bool) -> None:
        self.every: Fields = {each.number: each for each in message.fields}
        self.labels: dict[int, int] = {}
        """Of those that say one."""
        self.oneof_of: dict[int, str] = {}
        self.oneofs: dict[str, set[int]] = {}
        for number, each in declared(message).items():
            oneof = self.every[number].containing_oneof
            if oneof is not None and not each.proto3_optional:
                self.oneof_of[number] = oneof.name
                self.oneofs.setdefault(oneof.name, set()).add(number)
            elif all_have_labels or each.proto3_optional or each.label == REPEATED:
                self.labels[number] = each.label

    def group_of(self, number: int) -> object:
        """What takes the field, together with others or alone."""
        return self.oneof_of.get(number, number)


class _FileComparison:
    """One comparison of two files. Its methods return a reason, or nothing."""

    def __init__(self, old: ProtobufFile, new: ProtobufFile) -> None:
        self._old, self._new = old, new
        self._effort = Effort()
        self._under_way: set[str] = set()
        """Messages of the old file's imports that are being compared."""

    def types(self, old: Mapping[str, Descriptor], new: Mapping[str, Descriptor]) -> str:
        for name, before in old.items():
            after = new.get(name)
            if after is None and not before.GetOptions().map_entry:
                return f"message {shown(before.full_name)} was removed"
            if after is not None:
                reason = self._messages(before, after)
                if reason:
                    return f"{shown(before.full_name)}: {reason}"
        return ""

    def _messages(self, old: Descriptor, new: Descriptor) -> str:
        with self._effort:
            had = _DeclaredFields(old, all_have_labels=self._old.is_proto2(old.file.name))
            has = _DeclaredFields(new, all_have_labels=self._new.is_proto2(new.file.name))
            return (
                _oneofs(had, has)
                or _come_and_gone(had, has)
                or self._fields(had, has)
                or self.types(old.nested_types_by_name, new.nested_types_by_name)
            )

    def _fields(self, had: _DeclaredFields, has: _DeclaredFields) -> str:
        for number in sorted(had.every.keys() & has.every.keys()):
            reason = self._field(had.every[number], has.every[number])
            labels = {each.labels.get(number) for each in (had, has)} - {None}
            if not reason and len(labels) > 1 and _kind(has.every[number]) in OF_NUMBERS:
                reason = "the label of a number changed"
            if reason:
                return f"field {number}: {reason}"
        return ""

    def _field(self, old: FieldDescriptor, new: FieldDescriptor) -> str:
        before, after = _kind(old), _kind(new)
        if before != after:
            return f"{before} became {after}"
        if after == "map":
            for part in ("key", "value"):
                entries = (message_of(each).fields_by_name[part] for each in (old, new))
                reason = self._field(*entries)
                if reason:
                    return f"the {part} of the map: {reason}"
        if after == "message":
            return self._named(message_of(old), message_of(new))
        return ""

    def _named(self, old: Descriptor, new: Descriptor) -> str:
        """Compare the messages of a field, whose own file says what is in them unless they are
        imported.
        """
        if _local_name(old) != _local_name(new):
            return f"{shown(_local_name(old))} became {shown(_local_name(new))}"
        if old.file.name == self._old.file.name and new.file.name == self._new.file.name:
            return ""
        name = str(old.full_name)
        if name in self._under_way:
            return ""
        self._under_way.add(name)
        try:
            reason = self._messages(old, new)
        finally:
            self._under_way.discard(name)
        return f"{shown(name)}, {reason}" if reason else ""


def _oneofs(had: _DeclaredFields, has: _DeclaredFields) -> str:
    for name, numbers in has.oneofs.items():
        known = numbers & had.every.keys()
        if len(set(map(had.group_of, known))) > 1:
            return f"oneof {shown(name)} has fields that could be there together"
    for name, numbers in had.oneofs.items():
        lost = numbers - has.every.keys()
        if lost and (lost != numbers or name in has.oneofs):
            return f"oneof {shown(name)} has lost field {min(lost)}"
    return ""


def _come_and_gone(had: _DeclaredFields, has: _DeclaredFields) -> str:
    for one, other, what in ((had, has, "removed"), (has, had, "added")):
        for number in sorted(one.every.keys() - other.every.keys()):
            if one.labels.get(number) == REQUIRED:
                return f"field {number}, which is required, was {what}"
    return ""


def _kind(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return NUMBERS[0]
    if field.message_type is not None:
        return "map" if is_map(field) else "message"
    return KIND_OF[field.type]


def _local_name(message: Descriptor) -> str:
    """Without the package."""
    package = f"{message.file.package}."
    return str(message.full_name).removeprefix(package)
