"""ACK and FLOW by hand, with protobuf as the oracle."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.pulsar import commands, events
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.hot import FrameLimits, parse_acks, parse_flow
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.wire import PulsarWire

LIMITS = FrameLimits(6_000_000, verify=True)
NUMBERS = st.one_of(st.integers(0, 300), st.integers(16_000, 17_000), st.integers(0, (1 << 64) - 1))
CONSUMERS = st.one_of(st.integers(0, 3), NUMBERS)


def by_hand(frame: bytes) -> events.Acks | None:
    end, acks = parse_acks(frame, 0, LIMITS)
    assert end == (0 if acks is None else len(frame))
    return acks


def by_protobuf(frame: bytes) -> events.Acks:
    event = commands.decode(frame[8:])
    assert isinstance(event, events.Acks)
    return event


def ids_of(acks: events.Acks) -> set[tuple[int, int]]:
    assert sum(last - first + 1 for _, first, last in acks.ranges) < 100_000
    return {
        (ledger, entry) for ledger, first, last in acks.ranges for entry in range(first, last + 1)
    }


def same(one: events.Acks, other: events.Acks) -> bool:
    rest = [
        (each.consumer_id, each.cumulative, each.request_id, each.txn, each.validation_error)
        for each in (one, other)
    ]
    return rest[0] == rest[1] and ids_of(one) == ids_of(other) and one.partial == other.partial


# Long sequences, with gaps, out of order, over the borders of varint sizes and of ledgers.
PIECES = st.lists(
    st.tuples(
        st.sampled_from([5, 6, 70_000]),
        st.sampled_from([0, 100, 120, 16_300, 1 << 21, 1 << 40]),
        st.integers(1, 200),
        st.sampled_from([1, 1, 1, 2, 3]),
        st.booleans(),
    ),
    max_size=6,
)


def ids_from(pieces) -> list[tuple[int, int]]:
    ids = []
    for ledger, first, count, step, backwards in pieces:
        some = [(ledger, first + step * index) for index in range(count)]
        ids += reversed(some) if backwards else some
    return ids


@given(CONSUMERS, PIECES, st.randoms(use_true_random=False), st.booleans())
def test_grouped_acks(consumer_id, pieces, random, shuffled):
    ids = ids_from(pieces)
    if shuffled:
        random.shuffle(ids)
    frame = peer.ack(consumer_id, *ids)
    expected = by_protobuf(frame)
    acks = by_hand(frame)
    assert ids_of(expected) == set(ids)
    if consumer_id < 1 << 63:
        assert acks is not None
    assert acks is None or same(acks, expected)


ID = st.builds(
    lambda ledger, entry, others: peer.message_id(ledger, entry, **others),
    NUMBERS,
    NUMBERS,
    st.fixed_dictionaries(
        {},
        optional={
            "partition": st.integers(-1, 5),
            "batch_index": st.integers(-1, 5),
            "ack_set": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3),
            "batch_size": st.integers(0, 200),
        },
    ),
)
ANY = st.builds(
    lambda consumer, kind, ids, others: pb.CommandAck(
        consumer_id=consumer, ack_type=kind, message_id=ids, **others
    ),
    CONSUMERS,
    st.sampled_from([0, 1]),
    st.lists(ID, max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "validation_error": st.integers(0, 4),
            "txnid_most_bits": NUMBERS,
            "txnid_least_bits": NUMBERS,
            "request_id": NUMBERS,
            "properties": st.lists(
                st.builds(pb.KeyLongValue, key=st.text(max_size=3), value=NUMBERS), max_size=2
            ),
        },
    ),
)


@given(ANY)
def test_whatever_hand_takes_protobuf_takes_for_the_same(command):
    frame = peer.frame("ACK", command)
    acks = by_hand(frame)
    assert acks is None or same(acks, by_protobuf(frame))


@given(st.lists(ANY, max_size=5))
def test_whatever_is_sent_is_heard(sent):
    wire = PulsarWire()
    wire.feed(peer.connect() + b"".join(peer.frame("ACK", command) for command in sent))
    received = [event for event in wire.take_events() if isinstance(event, events.Acks)]
    total = [each for acks in received for each in sorted(ids_of(acks))]
    expected = [by_protobuf(peer.frame("ACK", command)) for command in sent]
    assert set(total) == {each for acks in expected for each in ids_of(acks)}
    assert [each for acks in received for each in acks.partial] == [
        each for acks in expected for each in acks.partial
    ]


def test_consecutive_ids_become_one_range():
    acks = by_hand(peer.ack(7, *[(5, entry) for entry in range(100, 20_000)]))
    assert acks == events.Acks(7, False, [(5, 100, 19_999)])


def test_ids_in_disorder_become_ranges():
    ids = [(5, 1000 + entry) for entry in (7, 3, 1, 2, 9, 8, 20)]
    acks = by_hand(peer.ack(7, *ids))
    assert acks is not None
    assert sorted(acks.ranges) == [(5, 1001, 1003), (5, 1007, 1009), (5, 1020, 1020)]


def test_single_acks_of_a_consumer_become_one_event():
    data = b"".join(peer.ack(7, (5, entry)) for entry in (200, 201, 202, 210, 205))
    end, acks = parse_acks(data, 0, LIMITS)
    assert end == len(data)
    assert acks == events.Acks(7, False, [(5, 200, 202), (5, 210, 210), (5, 205, 205)])


@pytest.mark.parametrize(
    "other",
    [
        peer.ack(8, (5, 201)),
        peer.ack(7, (6, 201)),
        peer.ack(7, (5, 1)),
        peer.ack(7, (5, 201), request_id=1),
        peer.ack(7, (5, 201), cumulative=True),
        peer.ack(7, (5, 201))[:-1],
    ],
)
def test_single_acks_that_differ_stay_apart(other):
    first = peer.ack(7, (5, 200))
    assert parse_acks(first + other, 0, LIMITS) == (
        len(first),
        events.Acks(7, False, [(5, 200, 200)]),
    )


def test_a_cumulative_ack():
    assert by_hand(peer.ack(7, (5, 9), cumulative=True)) == events.Acks(7, True, [(5, 9, 9)])
    two = peer.ack(7, (5, 9), (5, 10), cumulative=True)
    assert by_hand(two) is None
    assert by_protobuf(two).ranges == [(5, 9, 9), (5, 10, 10)]


def test_a_receipt_may_be_asked_for():
    acks = by_hand(peer.ack(7, (5, 9), (5, 10), request_id=300))
    assert acks == events.Acks(7, False, [(5, 9, 10)], request_id=300)


def test_a_part_of_a_batch():
    data = peer.message_id(5, 9, ack_set=[0b101, -1], batch_size=100)
    acks = by_protobuf(peer.ack(7, (5, 8), data))
    assert acks.ranges == [(5, 8, 8)]
    assert acks.partial == [(5, 9, 0b101 | ((1 << 64) - 1) << 64, 100)]


def test_nothing_left_of_a_batch_is_all_of_it():
    acks = by_protobuf(peer.ack(7, peer.message_id(5, 9, ack_set=[0, 0], batch_size=100)))
    assert (acks.ranges, acks.partial) == ([(5, 9, 9)], [])


def test_a_consumer_with_a_huge_number_is_left_to_protobuf():
    frame = peer.ack((1 << 64) - 1, (5, 9))
    assert by_hand(frame) is None
    assert by_protobuf(frame).consumer_id == (1 << 64) - 1


def test_why_a_message_is_given_up():
    acks = by_protobuf(peer.ack(7, (5, 9), validation_error=pb.CommandAck.DECRYPTION_ERROR))
    assert acks.validation_error == 4


@given(st.binary(max_size=60), st.integers(0, 20))
def test_nothing_is_read_beyond_the_data(hostile, offset):
    for head in (b"\x08\x0a\x52", b"\x08\x0b\x5a"):
        size = len(hostile) + 3
        start = pack(">II", size + 4, size) + head + hostile
        for data in (hostile, start, start[: len(start) // 2]):
            for parse in (parse_acks, parse_flow):
                end, _ = parse(data, min(offset, len(data)), LIMITS)
                assert end <= len(data)


@given(CONSUMERS, st.integers(0, (1 << 32) - 1))
def test_flow(consumer_id, permits):
    frame = peer.flow(consumer_id, permits)
    expected = events.Flow(consumer_id, permits)
    assert commands.decode(frame[8:]) == expected
    regular = consumer_id < 1 << 63 and permits < 1 << 28
    assert parse_flow(frame, 0, LIMITS) == ((len(frame), expected) if regular else (0, None))
