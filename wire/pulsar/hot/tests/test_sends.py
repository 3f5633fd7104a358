"""SEND by hand, with protobuf as the oracle."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.hot import FrameLimits, echo_of, parse_sends, sequence_of
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.wire import PulsarWire, WireOptions

LIMITS = FrameLimits(6_000_000, verify=True)
UNSIGNED = st.integers(0, (1 << 64) - 1)
NUMBERS = st.one_of(st.integers(0, 300), UNSIGNED)


def opened(**options) -> PulsarWire:
    wire = PulsarWire(WireOptions(**options))
    wire.feed(peer.connect())
    wire.take_events()
    return wire


def received(data: bytes, **options) -> list[events.Event]:
    wire = opened(**options)
    assert wire.feed(data) == len(data)
    return wire.take_events()


def flat(runs: list[events.Event]) -> list[tuple]:
    """One tuple for each message, whatever the runs."""
    return [
        (run.producer_id, payload, *sequence_of(echo), count, run.chunks, run.marker, run.txn)
        for run in runs
        for payload, echo, count in zip(
            run.payloads, run.sequences, run.counts or [1] * len(run.payloads), strict=True
        )
    ]


SENDS = st.builds(
    lambda required, others: pb.CommandSend(**required, **others),
    st.fixed_dictionaries({"producer_id": st.one_of(st.just(3), NUMBERS), "sequence_id": NUMBERS}),
    st.fixed_dictionaries(
        {},
        optional={
            "num_messages": st.one_of(st.integers(1, 200), st.integers(-(1 << 31), (1 << 31) - 1)),
            "highest_sequence_id": NUMBERS,
            "is_chunk": st.booleans(),
            "marker": st.booleans(),
            "txnid_most_bits": NUMBERS,
            "txnid_least_bits": NUMBERS,
        },
    ),
)
REGULAR = st.builds(
    pb.CommandSend, producer_id=st.integers(0, 2), sequence_id=st.integers(0, 1 << 40)
)


@given(st.lists(st.tuples(st.one_of(SENDS, REGULAR), st.binary(max_size=40), st.booleans())))
def test_every_legal_send_is_read_as_protobuf_reads_it(sent):
    data, expected = b"", []
    for command, payload, checked in sent:
        data += peer.frame("SEND", command, peer.tail(payload, checked=checked))
        in_txn = command.HasField("txnid_most_bits") and command.HasField("txnid_least_bits")
        expected.append(
            (
                command.producer_id,
                peer.tail(payload),
                command.sequence_id,
                command.highest_sequence_id,
                max(command.num_messages, 1),
                command.is_chunk,
                command.marker,
                (command.txnid_most_bits, command.txnid_least_bits) if in_txn else None,
            )
        )
    assert flat(received(data)) == expected


def raw_send(command: bytes, tail: bytes = peer.tail(b"x")) -> bytes:
    return pack(">II", len(command) + 4 + len(tail), len(command)) + command + tail


UNUSUAL = {
    "fields in another order": b"\x08\x06\x32\x04\x10\x07\x08\x03",
    "the type last": b"\x32\x04\x08\x03\x10\x07\x08\x06",
    "a field twice": b"\x08\x06\x32\x06\x08\x03\x10\x05\x10\x07",
    "an unknown field": b"\x08\x06\x32\x07\x08\x03\x10\x07\xf8\x07\x01",
    "a long form of the sequence id": b"\x08\x06\x32\x06\x08\x03\x10\x87\x80\x00",
    "a long form of the producer id": b"\x08\x06\x32\x05\x08\x83\x00\x10\x07",
    "a long form of the size": b"\x08\x06\x32\x84\x00\x08\x03\x10\x07",
    "the command in two pieces": b"\x08\x06\x32\x02\x08\x03\x32\x02\x10\x07",
    "one message, said aloud": b"\x08\x06\x32\x06\x08\x03\x10\x07\x18\x01",
    "no message, said aloud": b"\x08\x06\x32\x06\x08\x03\x10\x07\x18\x00",
}


@pytest.mark.parametrize("command", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_encodings(command):
    data = peer.send(3, 6) + raw_send(command) + peer.send(3, 8)
    messages = flat(received(data))
    assert [(each[0], each[2], each[4]) for each in messages] == [(3, 6, 1), (3, 7, 1), (3, 8, 1)]


def test_numbers_that_look_alike_are_told_apart():
    """Three bytes may be one sequence id, or a small one and a number of messages."""
    data = peer.send(3, 2_100_000) + peer.send(3, 5, num_messages=1) + peer.send(3, 2_100_001)
    data += peer.send(3, 5, num_messages=7)
    run, *others = received(data)
    assert not others
    assert [sequence_of(echo)[0] for echo in run.sequences] == [2_100_000, 5, 2_100_001, 5]
    assert run.counts == [1, 1, 1, 7]


def test_batches_and_single_messages_share_a_run():
    data = peer.send(3, 1) + peer.send_batch(3, 2, [b"a", b"b"]) + peer.send(3, 4)
    (run,) = received(data)
    assert run.counts == [1, 2, 1]
    assert [sequence_of(echo) for echo in run.sequences] == [(1, 0), (2, 3), (4, 0)]


def test_a_run_has_one_producer():
    data = peer.send(3, 1) + peer.send(3, 2) + peer.send(300, 1) + peer.send(3, 3)
    assert [(run.producer_id, len(run.payloads)) for run in received(data)] == [
        (3, 2),
        (300, 1),
        (3, 1),
    ]


def test_a_run_is_limited_in_number():
    data = b"".join(peer.send(3, number) for number in range(2500))
    assert [len(run.payloads) for run in received(data)] == [1000, 1000, 500]


def test_a_run_is_limited_in_bytes():
    data = b"".join(peer.send(3, number, b"x" * 300_000) for number in range(9))
    runs = received(data)
    assert [len(run.payloads) for run in runs] == [3, 3, 3]
    large = peer.send(3, 1, b"x" * 3_000_000)
    assert [len(run.payloads) for run in received(large + large)] == [1, 1]
    small = peer.send(3, 1)
    assert [len(run.payloads) for run in received(small + large + small)] == [1, 1, 1]


def test_chunks_are_runs_of_their_own():
    chunk = peer.send(3, 2, is_chunk=True)
    runs = received(peer.send(3, 1) + chunk + peer.send(3, 3))
    assert [run.chunks for run in runs] == [False, True, False]


def test_where_a_replicated_message_comes_from():
    (run,) = received(peer.send(3, 1, message_id=peer.message_id(8, 9)))
    assert run.origin == events.MessageId(8, 9)


def damaged(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


def test_a_bad_checksum_is_told_between_the_runs():
    data = peer.send(3, 1) + damaged(peer.send(3, 2)) + damaged(peer.send(3, 3)) + peer.send(3, 4)
    first, bad, worse, last = received(data)
    assert [sequence_of(echo)[0] for echo in first.sequences] == [1]
    assert (bad, worse) == (events.BadChecksum(3, 2), events.BadChecksum(3, 3))
    assert [sequence_of(echo)[0] for echo in last.sequences] == [4]


def test_a_bad_checksum_of_a_large_message():
    assert received(damaged(peer.send(3, 2, b"x" * 100_000))) == [events.BadChecksum(3, 2)]


def test_checksums_need_not_be_verified():
    data = damaged(peer.send(3, 1)) + damaged(peer.send(3, 2, is_chunk=True))
    assert len(flat(received(data, verify_checksums=False))) == 2


@pytest.mark.parametrize("fields", [{}, {"is_chunk": True}])
def test_a_missing_checksum_is_added(fields):
    (run,) = received(peer.send(3, 1, checked=False, **fields))
    assert run.payloads == [peer.tail(b"hello", peer.metadata(1))]


@pytest.mark.parametrize(
    "tail",
    [
        b"",
        b"\x00\x00",
        b"\x0e\x01\x00",
        b"\x0e\x02\x00\x00\x00\x02\x10\x05" + peer.tail(b""),
        b"\x00\x00\x00\x09" + b"12345678",
    ],
)
def test_a_message_whose_metadata_does_not_fit_is_refused(tail):
    with pytest.raises(WireError):
        opened().feed(raw_send(b"\x08\x06\x32\x04\x08\x03\x10\x07", tail))


def test_metadata_that_does_not_fit_is_refused_behind_a_good_checksum():
    good = peer.tail(b"")
    from crc32c import crc32c

    body = b"\x00\x00\xff\xff" + good[10:]
    tail = b"\x0e\x01" + pack(">I", crc32c(body)) + body
    with pytest.raises(WireError, match="does not fit"):
        opened().feed(peer.send(3, 6) + raw_send(b"\x08\x06\x32\x04\x08\x03\x10\x07", tail))


def test_the_regular_forms_are_taken_by_hand():
    """Otherwise all of the above would only test protobuf."""
    for data in (
        peer.send(3, 1),
        peer.send(3, 1 << 62),
        peer.send(1 << 40, 1),
        peer.send_batch(3, 1, [b"a", b"b"]),
        peer.send(3, 7, num_messages=3),
        peer.send(3, 7, highest_sequence_id=9),
        peer.send(3, 1) + peer.send_batch(3, 2, [b"a"]) + peer.send(3, 3),
    ):
        assert parse_sends(data, 0, LIMITS)[0] == len(data)


@given(st.binary(max_size=60), st.integers(0, 20))
def test_nothing_is_read_beyond_the_data(hostile, offset):
    start = pack(">II", len(hostile) + 7, 8) + b"\x08\x06\x32" + hostile
    for data in (hostile, start, start[: len(start) // 2]):
        at, run = parse_sends(data, min(offset, len(data)), LIMITS)
        assert at <= len(data)
        assert run is None or run.payloads


def test_a_frame_over_the_limit_is_not_taken():
    data = peer.send(3, 1, b"x" * 1000)
    assert parse_sends(data, 0, FrameLimits(500, verify=True)) == (0, None)


@given(UNSIGNED, st.one_of(st.none(), UNSIGNED))
def test_an_echo_tells_its_sequence_ids(sequence_id, highest):
    assert sequence_of(echo_of(sequence_id, highest)) == (sequence_id, highest or 0)
