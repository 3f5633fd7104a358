"""Definitions that are descriptors of protobuf."""

from __future__ import annotations

import base64
import json

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.protobuf_native import root_message


def file_of(module: object) -> FileDescriptorProto:
    found = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(found)  # type: ignore[attr-defined]
    return found


def definition(message: str, file: str, *files: FileDescriptorProto) -> bytes:
    """As clients send it."""
    packed = FileDescriptorSet(file=files).SerializeToString()
    return json.dumps(
        {
            "fileDescriptorSet": base64.b64encode(packed).decode(),
            "rootMessageTypeName": message,
            "rootFileDescriptorName": file,
        }
    ).encode()


TIME = file_of(timestamp_pb2)
TIMESTAMP = definition("google.protobuf.Timestamp", TIME.name, TIME)


def test_the_root_message() -> None:
    assert root_message(TIMESTAMP) == "google.protobuf.Timestamp"


def test_a_message_in_another() -> None:
    descriptor = file_of(descriptor_pb2)
    name = "google.protobuf.DescriptorProto.ExtensionRange"
    assert root_message(definition(name, descriptor.name, descriptor)) == name


IMPORTING = FileDescriptorProto(name="a.proto", dependency=["b.proto"])
IMPORTING.message_type.add(name="A")
IMPORTED = FileDescriptorProto(name="b.proto")


def test_imports() -> None:
    assert root_message(definition("A", "a.proto", IMPORTING, IMPORTED)) == "A"
    with pytest.raises(IncompatibleSchema, match="imports"):
        root_message(definition("A", "a.proto", IMPORTING))


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        TIMESTAMP.replace(b"Timestamp", b"Missing"),
        definition("Timestamp", TIME.name, TIME),
        definition("google.protobuf.Timestamp.Deeper", TIME.name, TIME),
        definition("google.protobuf.Timestamp", "other.proto", TIME),
        TIMESTAMP.replace(b'"fileDescriptorSet": "', b'"fileDescriptorSet": "AAAA'),
        TIMESTAMP.replace(b"Timestamp", b"Timestamp\xff"),
        TIMESTAMP.replace(b"Timestamp", b"Timestamp\\ud800"),
    ],
)
def test_what_is_none(bad: bytes) -> None:
    with pytest.raises(IncompatibleSchema):
        root_message(bad)


@given(st.binary(max_size=40))
def test_any_bytes_are_refused(data: bytes) -> None:
    packed = base64.b64encode(data).decode()
    for each in (data, json.dumps({**json.loads(TIMESTAMP), "fileDescriptorSet": packed}).encode()):
        with pytest.raises(IncompatibleSchema):
            root_message(each)
