"""MESSAGE by hand, read by protobuf."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.hot import messages, suffix_of, without_broker_part
from magnetar.wire.pulsar.parts import mask_of
from magnetar.wire.pulsar.tests import peer

UNSIGNED = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 1 << 62))
PAYLOADS = st.lists(st.sampled_from([b"", b"x", b"y" * 100, b"z" * 3000]), min_size=1, max_size=200)
SUFFIXES = st.fixed_dictionaries(
    {},
    optional={
        "partition": st.integers(-1, 1000),
        "redelivery_count": st.integers(0, (1 << 32) - 1),
        "ack_mask": st.one_of(st.none(), st.integers(0, (1 << 200) - 1)),
        "consumer_epoch": st.one_of(st.none(), UNSIGNED),
    },
)


def check(frame, consumer_id, position, fields, payload):
    kind, message, tail = frame
    assert (kind, tail) == ("MESSAGE", payload)
    assert message.consumer_id == consumer_id
    assert (message.message_id.ledger_id, message.message_id.entry_id) == position
    assert message.message_id.partition == fields.get("partition", -1)
    assert message.redelivery_count == fields.get("redelivery_count", 0)
    assert bool(message.ack_set) == (fields.get("ack_mask") is not None)
    assert mask_of(message.ack_set) == (fields.get("ack_mask") or 0)
    epoch = fields.get("consumer_epoch")
    assert message.HasField("consumer_epoch") == (epoch is not None)
    assert message.consumer_epoch == (epoch or 0)


@given(UNSIGNED, NUMBERS, NUMBERS, PAYLOADS, SUFFIXES)
def test_entries_that_differ_in_their_ids_only(consumer_id, ledger_id, first, payloads, fields):
    packed = messages(consumer_id, ledger_id, first, payloads, suffix_of(**fields))
    frames = peer.parse_frames(packed)
    assert len(frames) == len(payloads)
    for index, (frame, payload) in enumerate(zip(frames, payloads, strict=True)):
        check(frame, consumer_id, (ledger_id, first + index), fields, payload)


@given(UNSIGNED, NUMBERS, NUMBERS, st.lists(st.tuples(SUFFIXES, PAYLOADS), min_size=1, max_size=9))
def test_entries_each_with_fields_of_its_own(consumer_id, ledger_id, first, entries):
    payloads = [some[0] for _, some in entries]
    suffixes = [suffix_of(**fields) for fields, _ in entries]
    frames = peer.parse_frames(messages(consumer_id, ledger_id, first, payloads, suffixes))
    assert len(frames) == len(entries)
    for index, (frame, (fields, some)) in enumerate(zip(frames, entries, strict=True)):
        check(frame, consumer_id, (ledger_id, first + index), fields, some[0])


def test_large_payloads_are_not_copied():
    small, large = b"s" * 2048, b"l" * 2049
    packed = messages(1, 2, 3, [small, large, small, small], suffix_of())
    assert [piece is large for piece in packed] == [False, True, False]
    assert messages(1, 2, 3, [large], suffix_of())[1] is large


TAILS = [peer.tail(b"payload %d" % number) for number in range(5)]


def noted(tail: bytes, index: int) -> bytes:
    about = pb.BrokerEntryMetadata(broker_timestamp=1_700_000_000_000, index=index)
    encoded = about.SerializeToString()
    return b"\x0e\x02" + len(encoded).to_bytes(4, "big") + encoded + tail


def test_what_the_broker_noted_is_cut_off():
    for first in (0, 126, 16_382):
        entries = [noted(tail, first + index) for index, tail in enumerate(TAILS)]
        assert list(without_broker_part(entries)) == TAILS
    assert list(without_broker_part([noted(TAILS[0], 5)])) == TAILS[:1]


def test_entries_without_a_note_are_left_as_they_are():
    assert without_broker_part(TAILS) is TAILS
    mixed = [noted(TAILS[0], 1), TAILS[1], noted(TAILS[2], 300)]
    assert list(without_broker_part(mixed)) == TAILS[:3]


def test_a_missing_checksum_is_added():
    bare = [tail[6:] for tail in TAILS]
    assert list(without_broker_part(bare)) == TAILS
    assert list(without_broker_part([noted(tail, 1) for tail in bare])) == TAILS
    assert list(without_broker_part(bare[:1])) == TAILS[:1]
