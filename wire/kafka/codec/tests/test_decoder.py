"""What decoders make of bytes that nobody else would write."""

import tracemalloc

import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka.codec.decoder import decoder, source_of
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.basics import ApiVersionsRequest, MetadataRequest
from magnetar.wire.kafka.messages.records import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ProduceRequest,
)


def fetch(**given):
    part = FetchPartition(partition=1, fetch_offset=2, partition_max_bytes=3)
    topics = [FetchTopic(topic="t", partitions=[part])]
    return FetchRequest(max_wait_ms=1, min_bytes=1, topics=topics, **given)


def fetch_bytes(version=12, **given):
    return b"".join(encoder(FetchRequest, version, True)(fetch(**given)))


def test_offsets_are_of_the_whole():
    data = b"head" + fetch_bytes() + b"tail"
    assert decoder(FetchRequest, 12, True)(data, 4) == (fetch(), len(data) - 4)


def test_unknown_tagged_fields_are_skipped_in_every_structure():
    plain = fetch_bytes()
    unknown = b"\x02\x63\x03abc\xe4\x07\x00"
    partition_end = plain.rindex(b"\x00\x00\x01\x01\x00")
    assert partition_end == len(plain) - 5
    data = plain[:-5] + unknown + unknown + b"\x01\x01" + unknown
    assert decoder(FetchRequest, 12, True)(data, 0) == (fetch(), len(data))


def test_unknown_tagged_fields_among_known_ones():
    plain = fetch_bytes(cluster_id="c")
    known = b"\x00\x02\x02c"
    assert plain.endswith(b"\x01" + known)
    data = plain.removesuffix(b"\x01" + known) + b"\x03\x63\x01?" + known + b"\x64\x00"
    assert decoder(FetchRequest, 12, True)(data, 0) == (fetch(cluster_id="c"), len(data))


def test_a_message_without_known_tags():
    data = b"\x02a\x02b" + b"\x01\x00\x02??"
    value = ApiVersionsRequest(client_software_name="a", client_software_version="b")
    assert decoder(ApiVersionsRequest, 3, True)(data, 0) == (value, len(data))


def test_a_known_tagged_field_has_the_size_that_it_says():
    data = fetch_bytes().removesuffix(b"\x00")
    for wrong in (b"\x01\x00\x01\x02c", b"\x01\x00\x03\x02c?"):
        with pytest.raises(WireError):
            decoder(FetchRequest, 12, True)(data + wrong, 0)


def test_many_tagged_fields_that_would_all_read_the_same_bytes():
    data = fetch_bytes().removesuffix(b"\x00") + b"\xff\xff\x03" + b"\x00\x00" * 0xFFFF
    with pytest.raises(WireError):
        decoder(FetchRequest, 12, True)(data, 0)


def test_null_where_there_is_none():
    with pytest.raises(WireError, match="topics is null"):
        decoder(MetadataRequest, 0, False)(b"\xff\xff\xff\xff", 0)
    assert decoder(MetadataRequest, 1, False)(b"\xff\xff\xff\xff", 0)[0].topics is None


def test_text_that_is_none():
    with pytest.raises(WireError):
        decoder(MetadataRequest, 1, False)(b"\x00\x00\x00\x01\x00\x01\xff", 0)


HUGE = (b"\x7f\xff\xff\xff", b"\x00\x01\x00\x00")


@pytest.mark.parametrize("count", HUGE)
@pytest.mark.parametrize(
    "head",
    [
        b"\xff\xff\x00\x01\x00\x00\x00\x01",
        b"\xff\xff\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01t",
        b"\xff\xff\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x00",
    ],
    ids=["topics", "partitions", "records"],
)
def test_counts_and_sizes_that_the_message_cannot_hold(head, count):
    data = head + count + b"\x00" * 1000
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decoder(ProduceRequest, 3, False)(data, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000


def test_a_huge_count_of_numbers():
    head = b"".join(encoder(FetchRequest, 7, False)(fetch()))[:-4]
    forgotten = b"\x00\x00\x00\x01\x00\x01t" + b"\x00\x00\x03\xe8" + b"\x00" * 1000
    with pytest.raises(WireError):
        decoder(FetchRequest, 7, False)(head + forgotten, 0)


def test_the_source_can_be_read():
    assert source_of(FetchRequest, 4, False).startswith("def decode(data, at):")
