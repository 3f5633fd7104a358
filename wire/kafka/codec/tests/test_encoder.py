"""What encoders write; that others read it is shown beside the messages."""

import pytest

from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.codec.encoder import encoder, source_of
from magnetar.wire.kafka.messages.parts import LeaderIdAndEpoch, NodeEndpoint
from magnetar.wire.kafka.messages.records import (
    FetchedPartition,
    FetchedTopic,
    FetchResponse,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)

RECORDS = bytes(5000)


def fetched(**given):
    usual = {"error_code": 0, "high_watermark": 9, "aborted_transactions": None}
    part = FetchedPartition(partition_index=1, records=RECORDS, **(usual | given))
    return FetchResponse(responses=[FetchedTopic(topic="t", partitions=[part])])


def test_records_are_not_copied():
    assert any(piece is RECORDS for piece in encoder(FetchResponse, 12, True)(fetched()))


def test_tagged_fields_that_have_their_default_are_left_out():
    encode = encoder(FetchResponse, 12, True)
    without = b"".join(encode(fetched()))
    leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    with_leader = b"".join(encode(fetched(current_leader=leader)))
    # One field, number 1, of nine bytes: two numbers, and no tagged fields inside.
    assert with_leader == without[:-3] + bytes([1, 1, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0]) + without[-2:]


def test_tagged_fields_inside_tagged_fields_and_around_them():
    leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    value = fetched(current_leader=leader)
    value.node_endpoints = [NodeEndpoint(node_id=1, host="h", port=2, rack="r")]
    data = b"".join(encoder(FetchResponse, 16, True)(value))
    read, at = decoder(FetchResponse, 16, True)(data, 0)
    assert (read.node_endpoints, at) == (value.node_endpoints, len(data))
    assert read.responses[0].partitions[0].current_leader == leader


def test_fields_that_a_version_lacks_are_not_written():
    value = ProduceRequest(
        acks=1,
        timeout_ms=2,
        topic_data=[
            ProduceTopic(name="t", partition_data=[ProducePartition(index=3, records=b"rr")])
        ],
    )
    assert b"".join(encoder(ProduceRequest, 3, False)(value)) == bytes.fromhex(
        "ffff 0001 00000002 00000001 0001 74 00000001 00000003 00000002 7272"
    )


def test_null_where_the_version_has_none_is_our_own_mistake():
    with pytest.raises((TypeError, AttributeError)):
        encoder(FetchResponse, 4, False)(FetchResponse(responses=None))


def test_the_source_can_be_read():
    assert source_of(FetchResponse, 4, False).startswith("def encode(value):")


def test_pieces_are_written_one_by_one_and_read_as_one() -> None:
    whole = FetchedPartition(
        partition_index=0,
        error_code=0,
        high_watermark=1,
        aborted_transactions=None,
        records=[b"ab", memoryview(b"cd"), b""],
    )
    for version, flexible in ((4, False), (12, True)):
        data = b"".join(encoder(FetchedPartition, version, flexible)(whole))
        found, end = decoder(FetchedPartition, version, flexible)(data, 0)
        assert (found.records, end) == (b"abcd", len(data))


def test_records_that_are_brought_are_not_copied() -> None:
    data = b"".join(encoder(ProducePartition, 3, False)(ProducePartition(index=0, records=b"ab")))
    found, _ = decoder(ProducePartition, 3, False)(data, 0)
    assert isinstance(found.records, memoryview)
    assert found.records.obj is data
    assert found.records == b"ab"
