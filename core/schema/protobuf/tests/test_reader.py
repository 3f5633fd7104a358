"""Schemas in protobuf's language as they are read, and what is refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, struct_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.protobuf.reader import (
    BROUGHT_ALONG,
    DEPTH_MAX,
    NAME,
    ProtobufFile,
    entry_name,
    read,
    read_descriptor,
)
from magnetar.core.schema.protobuf.writer import message_of, written
from magnetar.core.schema.schema import ImportedSchema
from magnetar.wire.pulsar import commands_pb2

P3 = 'syntax = "proto3";'
WHOLE = """
/* A schema
   with everything. */
syntax = "proto3";
package shop.v1;
import public "google/protobuf/timestamp.proto";
import "google/protobuf/any.proto";
option java_package = "org.shop";  // is passed over
service Orders { rpc Get(Order) returns (stream Order) { option (x) = { a: "}" }; } }
extend google.protobuf.FieldOptions { string note = 50000; }
message Order {
  reserved 9, 20 to max; reserved "old";
  enum State {
    option allow_alias = true; NEW = 0; OPEN = 1; ALSO_OPEN = 0x1; LOST = -1 [deprecated = true];
  }
  message Line { string name = 1; .shop.v1.Order.State state = 2; Order parent = 3; };
  State state = 1;
  repeated Line lines = 2 [json_name = "all[]", (note) = "];"];
  map<string, Line> by_name = 3;
  map<int32, google.protobuf.Timestamp> times = 0x10;
  oneof payment { option (y) = 1; string card = 5; int64 cash = 6; }
  optional string remark = 7;
  google.protobuf.Any more = 8;
  string message = 10;
  bytes oneof = 11;
}
"""  # fmt: skip


def of(body: str, head: str = P3) -> ProtobufFile:
    return read(f"{head} {body}".encode())


def test_a_whole_file() -> None:
    found = read(WHOLE.encode()).file
    assert (found.package, [*found.message_types_by_name]) == ("shop.v1", ["Order"])
    order = found.message_types_by_name["Order"]
    assert [each.number for each in order.fields] == [1, 2, 3, 16, 5, 6, 7, 8, 10, 11]
    assert order.enum_types_by_name["State"].values_by_name["LOST"].number == -1
    line = order.nested_types_by_name["Line"]
    by_number = order.fields_by_number
    assert by_number[2].message_type is line
    assert line.fields_by_number[2].enum_type is order.enum_types_by_name["State"]
    assert line.fields_by_number[3].message_type is order
    assert [each.name for each in order.oneofs_by_name["payment"].fields] == ["card", "cash"]
    times = by_number[16].message_type
    assert times is not None
    assert times.name == "TimesEntry"
    value = times.fields_by_name["value"].message_type
    assert value is not None
    assert value.full_name == "google.protobuf.Timestamp"


def test_proto2() -> None:
    fields = "required int32 a = 1 [default = -3]; optional groups b = 2; extensions 100 to 199;"
    found = of(f"message M {{ {fields} }} message groups {{ repeated bytes c = 1; }}", "").file
    assert [*found.message_types_by_name] == ["M", "groups"]


def test_names_of_maps() -> None:
    """As `protoc` makes them."""
    assert [entry_name(each) for each in ("a", "by_name", "byName")] == [
        "AEntry", "ByNameEntry", "ByNameEntry",
    ]  # fmt: skip


def test_our_own_file_is_read_as_protoc_does() -> None:
    text = Path(commands_pb2.__file__).with_name("commands.proto").read_bytes()
    found, ours = read(text).file, commands_pb2.DESCRIPTOR
    assert found.message_types_by_name.keys() == ours.message_types_by_name.keys()
    for name, message in found.message_types_by_name.items():
        fields = [(each.number, each.name, each.type) for each in message.fields]
        same = ours.message_types_by_name[name]
        assert fields == [(each.number, each.name, each.type) for each in same.fields]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message M {", "more is expected"),
        ("message M { string a = ; }", "';' is not expected"),
        ("message M { string a = 1 }", "'}' is not expected"),
        ("message M { text a = 1; }", "not valid"),
        ("message M { string a = 1; string b = 1; }", "not valid"),
        ("message M { string a = 0; }", "not valid"),
        ("message M { string a = 99999999999; }", "not expected"),
        ("message M {} message M {}", "not valid"),
        ("message M { required string a = 1; }", "'required' is not expected"),
        ("message M { repeated group G = 1 { string a = 1; } }", "groups"),
        ("enum E { A = 1; }", "not valid"),
        ('import "other.proto"; message M {}', "another schema"),
        ("nonsense", "'nonsense' is not expected"),
        ("message M { string a = 1; } }", "'}' is not expected"),
        ("/* no end", "not expected"),
        ('option a = "no end;', "not expected"),
        ("option a = { b: 1", "more is expected"),
        ("message M { \0 }", "not expected"),
    ],
)
def test_refused(text: str, why: str) -> None:
    with pytest.raises(IncompatibleSchema, match=why):
        of(text)


@pytest.mark.parametrize("head", ['syntax = "proto4";', 'edition = "2023";'])
def test_other_syntax(head: str) -> None:
    with pytest.raises(IncompatibleSchema):
        of("message M {}", head)


def test_what_is_no_text() -> None:
    with pytest.raises(IncompatibleSchema, match="UTF-8"):
        read(b"\xff")


def test_what_the_library_says_is_passed_on() -> None:
    with pytest.raises(IncompatibleSchema, match=r"not valid: .*text"):
        of("message M { text a = 1; }")


def test_a_line_is_named() -> None:
    with pytest.raises(IncompatibleSchema, match="line 3 "):
        of("\n\nmessage 7 {}")


def test_the_depth_is_limited() -> None:
    deep = "message M {" * DEPTH_MAX + "}" * DEPTH_MAX
    assert [*of(deep).file.message_types_by_name] == ["M"]
    with pytest.raises(IncompatibleSchema, match="deep"):
        of(f"message M {{ {deep} }}")


def test_a_descriptor() -> None:
    found = read_descriptor(struct_pb2.DESCRIPTOR.serialized_pb).file
    assert "Struct" in found.message_types_by_name
    for wrong in (
        b"\xff",
        descriptor_pb2.FileDescriptorProto(syntax="editions").SerializeToString(),
    ):
        with pytest.raises(IncompatibleSchema):
            read_descriptor(wrong)


@pytest.mark.parametrize("name", sorted(BROUGHT_ALONG))
def test_what_protobuf_brings_along_may_be_imported(name: str) -> None:
    of(f'import "{name}"; message M {{}}')


WORDS = st.sampled_from(
    (
        *("message", "M", "enum", "oneof", "map", "<", ">", "{", "}", "=", ";", "1", "0x2", "-"),
        *("string", "repeated", "optional", "option", "import", '"a"', "[", "]", "(", ")", ","),
        *("syntax", '"proto3"', "package", "reserved", "//", "/*", "*/", "\n", "extend", "07"),
        *("a.b", "."),
    )
)  # fmt: skip


@given(st.lists(WORDS, max_size=40))
def test_any_words(words: list[str]) -> None:
    with suppress(IncompatibleSchema):
        read(" ".join(words).encode())


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_anything(what: str | bytes) -> None:
    with suppress(IncompatibleSchema):
        read(what.encode(errors="surrogatepass") if isinstance(what, str) else what)
    if isinstance(what, bytes):
        with suppress(IncompatibleSchema):
            read_descriptor(what)


P = b'syntax = "proto3"; package p; message P { int32 a = 1; }'
NEEDS_P = b'syntax = "proto3"; import "p.proto"; message M { p.P p = 1; }'


def test_imports() -> None:
    """Files that are given with the schema, and those that protobuf brings along."""
    stamped = b'import "google/protobuf/timestamp.proto"; import "p.proto"; message Q {}'
    imports = [
        ImportedSchema("p.proto", P),
        ImportedSchema("q.proto", stamped),
        ImportedSchema("p.proto", b"what has a name again is passed over"),
        ImportedSchema("google/protobuf/timestamp.proto", b"so is what protobuf has itself"),
    ]
    found = read(NEEDS_P, imports)
    (message,) = found.file.message_types_by_name.values()
    assert message_of(message.fields_by_name["p"]).full_name == "p.P"
    assert read(P.replace(b"p;", b"o;"), [ImportedSchema(NAME, P)]).proto.name != NAME


@pytest.mark.parametrize(
    ("imports", "why"),
    [
        ([], "not known here"),
        ([("q.proto", P)], "not known here"),
        ([("p.proto", b"message {")], "line 1"),
        ([("p.proto", b"\xff")], "UTF-8"),
        ([("p.proto", P), ("q.proto", P)], "not valid"),
        ([("p.proto", NEEDS_P)], "not known here"),
    ],
)
def test_imports_that_are_none(imports: list[tuple[str, bytes]], why: str) -> None:
    with pytest.raises(IncompatibleSchema, match=why):
        read(NEEDS_P, [ImportedSchema(*each) for each in imports])


def test_a_descriptor_with_imports() -> None:
    proto = FileDescriptorProto()
    read(NEEDS_P, [ImportedSchema("p.proto", P)]).file.CopyToProto(proto)
    found = read_descriptor(proto.SerializeToString(), [ImportedSchema("p.proto", P)])
    assert written(found) == written(read(NEEDS_P, [ImportedSchema("p.proto", P)]))
    assert 'import "p.proto";' in written(found)


def test_editions_are_refused_by_name() -> None:
    with pytest.raises(IncompatibleSchema, match="editions are not known"):
        read(b'edition = "2023"; message M { int32 a = 1; }')
    proto = FileDescriptorProto(name=NAME, syntax="editions", edition="EDITION_2023")
    proto.message_type.add(name="M")
    with pytest.raises(IncompatibleSchema, match="editions are not known"):
        read_descriptor(proto.SerializeToString())
