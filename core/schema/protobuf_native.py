"""Schemas that are protobuf's own descriptors. Pure.

The definition is JSON with a set of file descriptors, in base64, and the names of the root message
and of its file (`ProtobufNativeSchemaUtils.java` of Pulsar 4.2). Protobuf's own rules let fields
come and go, so a schema follows another one if the root message has the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError
from msgspec import Struct

from magnetar.core.kernel.errors import IncompatibleSchema


class Descriptors(Struct, frozen=True, rename="camel"):
    """The definition."""

    file_descriptor_set: bytes
    root_message_type_name: str
    root_file_descriptor_name: str


def root_message(definition: bytes) -> str:
    """The full name of the root message, which is defined and whose imports are."""
    try:
        found = msgspec.json.decode(definition, type=Descriptors)
        files = FileDescriptorSet.FromString(found.file_descriptor_set)
    except (msgspec.DecodeError, DecodeError, RecursionError, UnicodeError) as error:
        raise IncompatibleSchema(f"the definition is no descriptor of protobuf: {error}") from error
    by_name = {each.name: each for each in files.file}
    root = by_name.get(found.root_file_descriptor_name)
    if root is None:
        raise IncompatibleSchema("the file of the root message is not in the definition")
    _check_imports(by_name)
    if not _has(root, found.root_message_type_name):
        raise IncompatibleSchema("the root message is not in the definition")
    return found.root_message_type_name


def _check_imports(by_name: dict[str, FileDescriptorProto]) -> None:
    for each in by_name.values():
        if not by_name.keys() >= set(each.dependency):
            raise IncompatibleSchema("a file of the definition imports one that is not in it")


def _has(file: FileDescriptorProto, full_name: str) -> bool:
    """Whether a message of that name is defined there."""
    if file.package:
        if not full_name.startswith(f"{file.package}."):
            return False
        full_name = full_name[len(file.package) + 1 :]
    inside: Iterable[DescriptorProto] = file.message_type
    for name in full_name.split("."):
        message: Any = next((each for each in inside if each.name == name), None)
        if message is None:
            return False
        inside = message.nested_type
    return True
