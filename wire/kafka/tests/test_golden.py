"""Frames that stock clients sent, byte for byte, without their sizes.

Taken from a socket: kafka-python 3.0.12, and confluent-kafka 2.16.1 (librdkafka 2.16.0) where it
differs; a client named `golden` that sends one record to `orders`, and fetches from offset 5.
"""

import pytest

from magnetar.wire.kafka.apis import decode_header, decode_request
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.basics import (
    ApiVersionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from magnetar.wire.kafka.messages.records import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from magnetar.wire.kafka.messages.transactions import InitProducerIdRequest

BATCH = bytes.fromhex(
    "00000000000000000000003e0000000002021a0f340000000000000000018bcfe568000000018bcfe568000000"
    "0000000000070000000000000000000118000000026b0a68656c6c6f00"
)
FETCH_5 = FetchTopic(
    topic="orders",
    partitions=[
        FetchPartition(
            partition=0, current_leader_epoch=0, fetch_offset=5, partition_max_bytes=1048576
        )
    ],
)
FRAMES = {
    "ApiVersions v3": (
        "00120003000000010006676f6c64656e0017636f6e666c75656e742d6b61666b612d707974686f6e16322e"
        "31362e312d72646b61666b612d322e31362e3000",
        ApiVersionsRequest(
            client_software_name="confluent-kafka-python",
            client_software_version="2.16.1-rdkafka-2.16.0",
        ),
    ),
    "ApiVersions v4": (
        "00120004000000010006676f6c64656e000d6b61666b612d707974686f6e07332e302e313200",
        ApiVersionsRequest(client_software_name="kafka-python", client_software_version="3.0.12"),
    ),
    "Metadata v13, none": (
        "0003000d000000020006676f6c64656e0001010000",
        MetadataRequest(topics=[]),
    ),
    "Metadata v13": (
        "0003000d000000020006676f6c64656e000200000000000000000000000000000000076f726465727300010000",
        MetadataRequest(topics=[MetadataRequestTopic(name="orders")]),
    ),
    "InitProducerId v4": (
        "00160004000000020006676f6c64656e000000000000ffffffffffffffffffff00",
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0),
    ),
    "Produce v9": (
        "00000009000000030006676f6c64656e0000ffff0000753002076f726465727302000000004b"
        + BATCH.hex()
        + "000000",
        ProduceRequest(
            acks=-1,
            timeout_ms=30000,
            topic_data=[
                ProduceTopic(
                    name="orders", partition_data=[ProducePartition(index=0, records=BATCH)]
                )
            ],
        ),
    ),
    "Fetch v12": (
        "0001000c000000020006676f6c64656e00ffffffff000001f40000000103200000000000000000000000"
        "02076f72646572730200000000000000000000000000000005ffffffffffffffffffffffff00100000"
        "0000010100",
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=52428800,
            session_epoch=0,
            topics=[FETCH_5],
        ),
    ),
    "Fetch v12, read committed": (
        "0001000c000000020006676f6c64656e00ffffffff000001f400000001032000000100000000ffffffff"
        "02076f72646572730200000000000000000000000000000005ffffffffffffffffffffffff00100000"
        "0000010100",
        FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=52428800, isolation_level=1, topics=[FETCH_5]
        ),
    ),
}


@pytest.mark.parametrize(("frame", "expected"), FRAMES.values(), ids=FRAMES)
def test_what_stock_clients_say(frame, expected):
    data = bytes.fromhex(frame)
    header = decode_header(data, 0)
    assert header.client_id == "golden"
    assert decode_request(header.key, header.version, data, header.end) == expected


@pytest.mark.parametrize(("frame", "expected"), FRAMES.values(), ids=FRAMES)
def test_we_would_say_the_same(frame, expected):
    data = bytes.fromhex(frame)
    header = decode_header(data, 0)
    assert b"".join(encoder(type(expected), header.version, True)(expected)) == data[header.end :]
