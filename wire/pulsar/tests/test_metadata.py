"""The whole metadata of an entry."""

import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.metadata import Metadata, read
from magnetar.wire.pulsar.tests import peer


def test_little_metadata():
    entry = read(peer.tail(b"hello"))
    assert entry.metadata == Metadata("p", 0, 1_700_000_000_000, {})
    assert (entry.payload, entry.index, entry.broker_timestamp) == (b"hello", None, None)


def test_all_of_it():
    about = peer.metadata(
        7,
        properties=[pb.KeyValue(key="a", value="b")],
        event_time=1,
        deliver_at_time=2,
        num_messages_in_batch=1,
        highest_sequence_id=9,
        partition_key="k",
        partition_key_b64_encoded=True,
        ordering_key=b"o",
        null_value=True,
        compression=pb.ZSTD,
        uncompressed_size=10,
        encryption_keys=[pb.EncryptionKeys(key="e", value=b"v")],
        schema_version=b"\x00",
        uuid="u",
        chunk_id=1,
        num_chunks_from_msg=2,
        total_chunk_msg_size=3,
        marker_type=21,
        txnid_most_bits=0,
        txnid_least_bits=5,
        replicated_from="east",
        replicate_to=["west"],
    )
    noted = b"\x0e\x02\x00\x00\x00\x04\x08\x64\x10\x05"
    entry = read(noted + peer.tail(b"x", about))
    assert (entry.broker_timestamp, entry.index) == (100, 5)
    assert entry.metadata == Metadata(
        producer_name="p",
        sequence_id=7,
        publish_time=1_700_000_000_000,
        properties={"a": "b"},
        event_time=1,
        deliver_at_time=2,
        batch_size=1,
        highest_sequence_id=9,
        partition_key="k",
        partition_key_is_base64=True,
        ordering_key=b"o",
        null_value=True,
        compression=3,
        uncompressed_size=10,
        encryption_keys=("e",),
        schema_version=b"\x00",
        uuid="u",
        chunk_id=1,
        chunk_count=2,
        chunks_bytes=3,
        marker_type=21,
        txn=(0, 5),
        replicated_from="east",
        replicate_to=("west",),
    )


@pytest.mark.parametrize(
    "tail", [b"", b"\x00\x00\x00\x02\xff\xff", b"\x00\x00\x00\x00", b"\x00\x00\x00\x05\x0a\x01\xff"]
)
def test_what_is_no_metadata(tail):
    with pytest.raises(WireError):
        read(tail)


def test_text_that_is_not_utf8():
    tail = peer.tail(b"", peer.metadata(producer_name="abcd"))
    with pytest.raises(WireError):
        read(tail.replace(b"abcd", b"ab\xff\xfe"))
