"""The broker's own reader of metadata (`core.entry.pulsar.metadata`) against protobuf."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.pulsar import metadata as reader
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
UNSIGNED = st.integers(0, (1 << 64) - 1)
PAIRS = st.builds(pb.KeyValue, key=st.text(max_size=8), value=st.text(max_size=200))


def optional(**fields: st.SearchStrategy) -> st.SearchStrategy[dict]:
    return st.fixed_dictionaries({}, optional=fields)


METADATA = st.builds(
    lambda required, others: pb.MessageMetadata(**required, **others),
    st.fixed_dictionaries(
        {
            "producer_name": st.text(max_size=20),
            "sequence_id": UNSIGNED,
            "publish_time": st.integers(0, (1 << 63) - 1),
        }
    ),
    optional(
        properties=st.lists(PAIRS, max_size=3),
        partition_key=st.text(max_size=20),
        replicate_to=st.lists(st.text(max_size=3), max_size=2),
        num_messages_in_batch=st.integers(-5, 5000),
        event_time=st.integers(0, (1 << 63) - 1),
        encryption_keys=st.lists(
            st.builds(pb.EncryptionKeys, key=st.text(max_size=4), value=st.binary(max_size=9)),
            max_size=2,
        ),
        schema_version=st.binary(max_size=8),
        ordering_key=st.binary(max_size=20),
        deliver_at_time=LONG,
        marker_type=st.integers(0, 30),
        null_value=st.booleans(),
        uuid=st.text(max_size=12),
        num_chunks_from_msg=st.integers(0, 400),
        chunk_id=st.integers(0, 400),
        entry_hash_min=st.integers(0, 65535),
    ),
)


def field(about: pb.MessageMetadata, name: str):
    return getattr(about, name) if about.HasField(name) else None


def signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@given(METADATA, st.binary(max_size=30), st.booleans(), st.booleans())
def test_every_field_is_read_as_protobuf_reads_it(about, payload, checked, noted):
    tail = peer.tail(payload, about, checked)
    if noted:
        tail = b"\x0e\x02\x00\x00\x00\x02\x10\x05" + tail
    assert reader.publish_time(tail) == about.publish_time
    assert reader.event_time(tail) == about.event_time
    assert reader.deliver_at_time(tail) == field(about, "deliver_at_time")
    assert reader.marker_type(tail) == field(about, "marker_type")
    assert reader.has_encryption_keys(tail) == bool(about.encryption_keys)
    batch = about.HasField("num_messages_in_batch")
    assert reader.message_count(tail) == (max(about.num_messages_in_batch, 1), batch)
    key = field(about, "partition_key")
    assert reader.partition_key(tail) == (key if key is None else key.encode())
    chunk = [field(about, name) for name in ("uuid", "chunk_id", "num_chunks_from_msg")]
    expected = None if None in chunk else (chunk[0].encode(), chunk[1], chunk[2])
    assert reader.chunk(tail) == expected


@given(METADATA)
def test_the_sticky_key_is_chosen_as_pulsar_does(about):
    if about.HasField("ordering_key"):
        expected = about.ordering_key
    elif about.HasField("partition_key"):
        expected = about.partition_key.encode()
    else:
        expected = f"{about.producer_name}-{signed(about.sequence_id)}".encode()
    assert reader.sticky_key(peer.tail(b"", about)) == expected


@given(st.binary(max_size=40))
def test_a_sticky_key_in_base64_is_decoded(key):
    about = peer.metadata(
        partition_key=base64.b64encode(key).decode(), partition_key_b64_encoded=True
    )
    assert reader.sticky_key(peer.tail(b"", about)) == key


def test_a_sticky_key_that_is_not_base64_is_taken_as_it_is():
    about = peer.metadata(partition_key="a", partition_key_b64_encoded=True)
    assert reader.sticky_key(peer.tail(b"", about)) == b"a"


def test_long_keys_have_long_sizes():
    about = peer.metadata(partition_key="k" * 300, deliver_at_time=7)
    tail = peer.tail(b"x" * 5000, about)
    assert reader.partition_key(tail) == b"k" * 300
    assert reader.deliver_at_time(tail) == 7
    assert reader.chunk(tail) is None


def test_a_batch_of_one_is_a_batch():
    assert reader.message_count(peer.tail(b"")) == (1, False)
    assert reader.message_count(peer.tail(b"", peer.metadata(num_messages_in_batch=1))) == (1, True)


def test_the_sequence_of_a_batch_is_that_of_its_last_message():
    about = peer.metadata(7, producer_name="me")
    assert reader.sequence(peer.tail(b"", about)) == (b"me", 7)
    about.highest_sequence_id = 9
    assert reader.sequence(peer.tail(b"", about)) == (b"me", 9)
    assert reader.sequence(b"") is None


def test_of_a_field_given_twice_the_last_counts():
    encoded = peer.metadata().SerializeToString() + b"\x18\x09"
    tail = len(encoded).to_bytes(4, "big") + encoded
    assert reader.publish_time(tail) == 9


FIXED = b"\x99\x06\x00\x00\x00\x00\x00\x00\x00\x00\x9d\x06\x00\x00\x00\x00"


def test_fields_of_later_versions_are_stepped_over():
    encoded = FIXED + peer.metadata(partition_key="k").SerializeToString()
    tail = len(encoded).to_bytes(4, "big") + encoded
    assert reader.partition_key(tail) == b"k"


READERS = [
    reader.sticky_key,
    reader.partition_key,
    reader.publish_time,
    reader.event_time,
    reader.deliver_at_time,
    reader.message_count,
    reader.chunk,
    reader.marker_type,
    reader.has_encryption_keys,
    reader.sequence,
]


@given(st.binary(max_size=80), st.sampled_from([b"", b"\x0e\x01", b"\x0e\x02"]))
def test_nothing_can_be_said_that_raises(hostile, start):
    for read in READERS:
        read(start + hostile)
        read(start + len(hostile).to_bytes(4, "big") + hostile)


@given(METADATA, st.data())
def test_damage_hides_what_is_behind_it(about, data):
    encoded = about.SerializeToString()
    kept = encoded[: data.draw(st.integers(0, len(encoded)))]
    for read in READERS:
        read(len(kept).to_bytes(4, "big") + kept)


def test_without_metadata_there_is_no_key():
    assert reader.sticky_key(b"") is None
    assert reader.sticky_key(b"\x00\x00\x00\x03\x1f\x00\x00") is None


def test_numbers_without_an_end_are_damage() -> None:
    """They were read to their end: a few megabytes of that, in one message, took minutes."""
    deliver_at = b"\x98\x01"
    longest = deliver_at + b"\xff" * 9 + b"\x01"
    too_long = deliver_at + b"\xff" * 10 + b"\x01"
    sized_too_long = b"\x0a" + b"\x80" * 10 + b"\x00" + longest
    named_too_long = b"\x98" + b"\x80" * 10 + b"\x00\x05"
    found = [
        reader.deliver_at_time(len(each).to_bytes(4, "big") + each)
        for each in (longest, too_long, longest + sized_too_long, longest + named_too_long)
    ]
    assert found == [-1, None, -1, -1]


def test_metadata_of_very_many_fields_is_not_looked_through() -> None:
    fields = b"\x10\x00" * (reader.FIELDS_MAX - 1)
    deliver_at = b"\x98\x01\x07"
    found = [
        reader.deliver_at_time(len(each).to_bytes(4, "big") + each)
        for each in (fields + deliver_at, b"\x10\x00" + fields + deliver_at)
    ]
    assert found == [7, None]


@given(METADATA, UNSIGNED, UNSIGNED, st.booleans())
def test_a_transaction_is_added_and_read(about, most, least, checked):
    about.ClearField("txnid_most_bits")
    about.ClearField("txnid_least_bits")
    sent = peer.tail(b"payload", about, checked)
    assert reader.transaction(sent) is None
    stated = reader.with_transaction(sent, most, least)
    assert reader.transaction(stated) == (most, least)
    about.txnid_most_bits, about.txnid_least_bits = most, least
    found = peer.open_tail(stated)
    assert (found.metadata, found.payload) == (about, b"payload")
