"""One text for all ways to write a schema."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from magnetar.core.schema.protobuf.reader import BROUGHT_ALONG, read, read_descriptor
from magnetar.core.schema.protobuf.tests.test_reader import WHOLE, of
from magnetar.core.schema.protobuf.writer import written
from magnetar.wire.pulsar import commands_pb2

ORDER = """\
syntax = "proto3";
package shop.v1;
import "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";

message Order {
  enum State {
    option allow_alias = true;
    NEW = 0;
    OPEN = 1;
    ALSO_OPEN = 1;
    LOST = -1;
  }
  message Line {
    string name = 1;
    .shop.v1.Order.State state = 2;
    .shop.v1.Order parent = 3;
  }
  .shop.v1.Order.State state = 1;
  repeated .shop.v1.Order.Line lines = 2;
  map<string, .shop.v1.Order.Line> by_name = 3;
  map<int32, .google.protobuf.Timestamp> times = 16;
  optional string remark = 7;
  .google.protobuf.Any more = 8;
  string message = 10;
  bytes oneof = 11;
  oneof payment {
    string card = 5;
    int64 cash = 6;
  }
}
"""


def test_a_whole_file() -> None:
    assert written(read(WHOLE.encode())) == ORDER


def test_what_is_written_is_read_as_the_same() -> None:
    old = "message M { required int32 a = 1; optional M b = 2; repeated string c = 3; }"
    for text in (WHOLE, old):
        once = written(read(text.encode()))
        assert written(read(once.encode())) == once


@pytest.mark.parametrize("name", sorted(BROUGHT_ALONG))
def test_descriptors_are_written(name: str) -> None:
    """Of files that `protoc` has compiled."""
    once = written(read_descriptor(BROUGHT_ALONG[name].serialized_pb))
    assert written(read(once.encode())) == once


def test_our_own_file_in_both_forms_is_one_schema() -> None:
    proto = FileDescriptorProto()
    commands_pb2.DESCRIPTOR.CopyToProto(proto)
    once = written(read_descriptor(proto.SerializeToString()))
    assert written(read(once.encode())) == once


def test_comments_and_options_make_no_difference() -> None:
    plain = of("message M { string a = 1; }")
    adorned = of("// c\noption o = 1; message M { string /* d */ a = 1 [deprecated = true]; };")
    assert written(plain) == written(adorned)
    assert written(plain) != written(of("message M { string b = 1; }"))
