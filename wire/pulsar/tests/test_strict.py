"""What protobuf's runtime lets through and we do not."""

import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.strict import parse


def test_a_complete_message():
    pair = pb.KeyValue(key="a", value="b")
    assert parse(pb.KeyValue, pair.SerializeToString()) == pair


def test_required_fields_are_required():
    with pytest.raises(WireError, match="without value"):
        parse(pb.KeyValue, b"\x0a\x01a")
    with pytest.raises(WireError, match=r"lookup\.request_id"):
        parse(pb.BaseCommand, b"\x08\x17\xba\x01\x03\x0a\x01t")


def test_bytes_that_are_no_message():
    with pytest.raises(WireError, match="not a KeyValue"):
        parse(pb.KeyValue, b"\x0a\x09a")


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (pb.KeyValue, b"\x0a\x01\xff\x12\x00"),
        (pb.CommandGetTopicsOfNamespaceResponse, b"\x08\x01\x12\x01\xff"),
        (pb.CommandLookupTopic, b"\x0a\x00\x10\x01\x42\x05\x0a\x01\xff\x12\x00"),
    ],
)
def test_text_is_utf8(kind, data):
    with pytest.raises(WireError, match="UTF-8"):
        parse(kind, data)


def test_unknown_choices_of_required_fields_are_missing_fields():
    with pytest.raises(WireError, match="type"):
        parse(pb.BaseCommand, b"\x08\x46")
