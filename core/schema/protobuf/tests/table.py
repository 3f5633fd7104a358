"""A table of schemas in protobuf's language, each of which is compared with every other.

They are small, and differ from one another in one thing: types of a field and its label, oneofs
that fields go into and come out of, maps, enums, messages that come and go, nested or imported
ones. `verdicts.txt` has what Confluent's library says of each pair.
"""

from collections.abc import Mapping
from typing import Final

from magnetar.core.schema.schema import ImportedSchema

TYPES: Final = (
    *("int32", "int64", "uint32", "bool", "sint32", "sint64", "string", "bytes"),
    *("fixed32", "sfixed32", "fixed64", "sfixed64", "float", "double"),
)
PART, OTHER_PART, PART_WITH_MORE, PART_IN_Q = (
    f'syntax = "proto3"; package {package}; message Part {{ {fields} }}'
    for package, fields in (
        ("p", "int32 x = 1;"),
        ("p", "string x = 1;"),
        ("p", "int64 x = 1; string y = 2;"),
        ("q", "int32 x = 1;"),
    )
)
RING: Final = 'syntax = "proto3"; package p; message Part { int32 x = 1; Part next = 2; }'
COLOURS: Final = 'syntax = "proto3"; package p; enum Part { WHITE = 0; }'
WHERE: Final = "part.proto"


def proto3(body: str, head: str = "") -> str:
    return f'syntax = "proto3"; {head} {body}'


def proto2(body: str) -> str:
    return f'syntax = "proto2"; {body}'


def importing(imported: str, package: str = "p", body: str = "") -> tuple[str, Mapping[str, str]]:
    """A message with a field of a type that another file has."""
    text = body or f"message M {{ {package}.Part a = 1; }}"
    return proto3(text, f'import "{WHERE}";'), {WHERE: imported}


ALONE: Final = [
    *(proto3(f"message M {{ {each} a = 1; }}") for each in TYPES),
    # labels
    *(
        proto3(f"message M {{ {label} {each} a = 1; }}")
        for label in ("optional", "repeated")
        for each in ("int32", "string", "double")
    ),
    *(
        proto2(f"message M {{ {label} {each} a = 1; }}")
        for label in ("optional", "required", "repeated")
        for each in ("int32", "string")
    ),
    # fields that come and go
    proto3("message M {}"),
    proto3("message M { int32 b = 1; }"),
    proto3("message M { int32 a = 1; string b = 2; }"),
    proto3("message M { string b = 2; }"),
    proto3("message M { int32 a = 1; int32 b = 2; int32 c = 3; }"),
    proto2("message M { optional int32 a = 1; required string b = 2; }"),
    proto2("message M { required int32 a = 1; required string b = 2; }"),
    proto3("message M { reserved 2; int32 a = 1; }"),
    # oneofs
    proto3("message M { oneof o { int32 a = 1; } }"),
    proto3("message M { oneof p { int32 a = 1; } }"),
    proto3("message M { oneof o { int32 a = 1; string b = 2; } }"),
    proto3("message M { oneof p { int32 a = 1; string b = 2; } }"),
    proto3("message M { oneof o { int32 a = 1; string b = 2; int32 c = 3; } }"),
    proto3("message M { oneof o { int32 a = 1; } oneof p { string b = 2; } }"),
    proto3("message M { oneof o { int32 a = 1; } string b = 2; }"),
    proto3("message M { oneof o { string b = 2; } int32 a = 1; }"),
    proto3("message M { oneof o { string b = 2; } }"),
    proto3("message M { oneof o { string a = 1; string b = 2; } }"),
    proto2("message M { oneof o { int32 a = 1; string b = 2; } }"),
    # maps
    proto3("message M { map<string, int32> a = 1; }"),
    proto3("message M { map<string, int64> a = 1; }"),
    proto3("message M { map<int32, int32> a = 1; }"),
    proto3("message M { map<string, string> a = 1; }"),
    proto3("message M { map<bytes, E> a = 1; } enum E { Z = 0; }").replace("bytes", "string"),
    proto3("message M { map<string, N> a = 1; } message N { int32 x = 1; }"),
    # enums
    proto3("message M { E a = 1; } enum E { Z = 0; }"),
    proto3("message M { E a = 1; } enum E { Z = 0; Y = 1; }"),
    proto3("message M { E a = 1; } enum E { X = 0; }"),
    proto3("message M { E a = 1; enum E { Z = 0; } }"),
    proto3("message M { repeated E a = 1; } enum E { Z = 0; }"),
    proto3("enum E { Z = 0; }"),
    # messages
    proto3("message M { N a = 1; } message N { int32 x = 1; }"),
    proto3("message M { N a = 1; } message N { string x = 1; }"),
    proto3("message N { int32 x = 1; } message M { N a = 1; }"),
    proto3("message M { O a = 1; } message O { int32 x = 1; }"),
    proto3("message M { N a = 1; message N { int32 x = 1; } }"),
    proto3("message M { repeated N a = 1; } message N { int32 x = 1; }"),
    proto3("message M { int32 a = 1; } message N { int32 x = 1; }"),
    proto3("message M { int32 a = 1; message N { int32 x = 1; } }"),
    proto3("message M { int32 a = 1; message N { string x = 1; } }"),
    proto3("message N { int32 a = 1; }"),
    proto3("message M { M a = 1; int32 b = 2; }"),
    proto3("message M { M a = 1; string b = 2; }"),
    # packages, and what protobuf brings along
    proto3("message M { int32 a = 1; }", "package p;"),
    proto3("message M { int32 a = 1; string b = 2; }", "package p;"),
    proto3("message M { N a = 1; } message N { int32 x = 1; }", "package p;"),
    proto3("message M { int32 a = 1; }", "package p.q;"),
    proto3(
        "message M { google.protobuf.Timestamp a = 1; }",
        'import "google/protobuf/timestamp.proto";',
    ),
    proto3(
        "message M { google.protobuf.Duration a = 1; }", 'import "google/protobuf/duration.proto";'
    ),
]
IMPORTING: Final = [
    importing(PART),
    importing(OTHER_PART),
    importing(PART_WITH_MORE),
    importing(PART_IN_Q, "q"),
    importing(RING),
    importing(COLOURS),
    importing(PART, body="message M { int32 a = 1; }"),
    importing(PART, body="message M { p.Part a = 1; p.Part b = 2; }"),
    importing(PART, body="message M { map<string, p.Part> a = 1; }"),
    importing(OTHER_PART, body="message M { map<string, p.Part> a = 1; }"),
    importing(PART, body="message M { Part a = 1; } message Part { int32 x = 1; }"),
]
SCHEMAS: Final[list[tuple[str, Mapping[str, str]]]] = [
    *((text, {}) for text in ALONE),
    *IMPORTING,
]


def imports_of(files: Mapping[str, str]) -> tuple[ImportedSchema, ...]:
    return tuple(ImportedSchema(name, text.encode()) for name, text in files.items())
