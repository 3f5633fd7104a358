"""Files that serializers take for known."""

from __future__ import annotations

import pytest

from magnetar.core.schema.protobuf import known_files
from magnetar.core.schema.protobuf.compatibility import incompatibility
from magnetar.core.schema.protobuf.reader import read
from magnetar.core.schema.schema import ImportedSchema


@pytest.mark.parametrize("name", known_files.DECLARATIONS)
def test_each_is_a_file_and_can_be_imported(name: str) -> None:
    text = known_files.text_of(name)
    known = read(text.encode())
    types = [*known.file.message_types_by_name, *known.file.enum_types_by_name]
    field = f"{known.file.package}.{types[0]} a = 1;"
    schema = f'syntax = "proto3"; import "{name}"; message M {{ {field} }}'
    found = read(schema.encode())
    assert incompatibility(found, found) == ""
    as_reference = read(schema.encode(), [ImportedSchema(name, text.encode())])
    assert incompatibility(found, as_reference) == ""


def test_two_files_that_import_one() -> None:
    imports = [
        ImportedSchema(
            "part.proto",
            b'syntax = "proto3"; package p; import "google/type/datetime.proto";'
            b"message Part { google.type.DateTime at = 1; }",
        )
    ]
    whole = (
        b'syntax = "proto3"; import "part.proto"; import "google/type/datetime.proto";'
        b"message M { p.Part part = 1; google.type.TimeZone zone = 2; }"
    )
    assert [each.name for each in read(whole, imports).file.message_types_by_name.values()] == ["M"]


def test_what_is_not_known() -> None:
    assert known_files.text_of("google/type/other.proto") == ""
