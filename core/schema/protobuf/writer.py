"""Writes a schema in protobuf's language, in one form. Pure.

Clients that have compiled classes send descriptors; others read text. And two texts are one schema
if they are written alike: comments, options and the order of imports make no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from magnetar.core.schema.protobuf.reader import LABELS, SCALARS, ProtobufFile

NAMES: Final = {number: name for name, number in SCALARS.items()}
LABELS_AS_WRITTEN: Final = {number: f"{name} " for name, number in LABELS.items()}


def written(found: ProtobufFile) -> str:
    """The text of a schema."""
    file: FileDescriptor = found.file
    syntax = found.proto.syntax or "proto2"
    lines = [f'syntax = "{syntax}";']
    if file.package:
        lines.append(f"package {file.package};")
    lines += sorted(f'import "{name}";' for name in found.proto.dependency)
    is_old = syntax == "proto2"
    for enum in file.enum_types_by_name.values():
        lines += ["", *_enum(enum)]
    for message in file.message_types_by_name.values():
        lines += ["", *_message(message, labelled=is_old)]
    return "\n".join(lines) + "\n"


def declared(message: Descriptor) -> dict[int, FieldDescriptorProto]:
    """The fields of a message as they are declared, by number. A field of proto3 that says
    `optional` is in a oneof of its own.
    """
    proto = DescriptorProto()
    message.CopyToProto(proto)
    return {each.number: each for each in proto.field}


def message_of(field: FieldDescriptor) -> Descriptor:
    """The type of a field whose type is a message."""
    found = field.message_type
    assert found is not None
    return found


def _message(message: Descriptor, *, labelled: bool) -> Iterator[str]:
    fields = declared(message)
    yield f"message {message.name} {{"
    for enum in message.enum_types:
        yield from _indented(_enum(enum))
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            yield from _indented(_message(nested, labelled=labelled))
    for field in message.fields:
        said = fields[field.number]
        if field.containing_oneof is None or said.proto3_optional:
            label = "" if is_map(field) else LABELS_AS_WRITTEN[said.label]
            if label == "optional " and not labelled and not said.proto3_optional:
                label = ""
            yield f"  {label}{_field(field)}"
    for oneof in message.oneofs:
        if not fields[oneof.fields[0].number].proto3_optional:
            yield f"  oneof {oneof.name} {{"
            yield from (f"    {_field(field)}" for field in oneof.fields)
            yield "  }"
    yield "}"


def _field(field: FieldDescriptor) -> str:
    return f"{_type(field)} {field.name} = {field.number};"


def _type(field: FieldDescriptor) -> str:
    if is_map(field):
        key, value = map(message_of(field).fields_by_name.__getitem__, ("key", "value"))
        return f"map<{_type(key)}, {_type(value)}>"
    named = field.message_type or field.enum_type
    return NAMES[field.type] if named is None else f".{named.full_name}"


def is_map(field: FieldDescriptor) -> bool:
    found = field.message_type
    return found is not None and bool(found.GetOptions().map_entry)


def _enum(enum: EnumDescriptor) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    if enum.GetOptions().allow_alias:
        yield "  option allow_alias = true;"
    for value in enum.values:
        yield f"  {value.name} = {value.number};"
    yield "}"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
