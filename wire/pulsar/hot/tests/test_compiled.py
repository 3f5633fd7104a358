"""The compiled twins give what the pure ones give, for any bytes, cut anywhere; and never crash."""

import struct
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.hot import FrameLimits, Suffix
from magnetar.wire.pulsar.hot.acks import parse_acks
from magnetar.wire.pulsar.hot.acks_in_transaction import parse_acks_in_transaction
from magnetar.wire.pulsar.hot.messages import messages, without_broker_part
from magnetar.wire.pulsar.hot.receipts import receipts
from magnetar.wire.pulsar.hot.sends import parse_sends
from magnetar.wire.pulsar.hot.tests.test_acks import ANY, CONSUMERS, PIECES, ids_from
from magnetar.wire.pulsar.tests import peer

BUILT = "compiled modules are built where there is a C compiler"
reading = pytest.importorskip("magnetar.wire.pulsar.hot.compiled.reading", reason=BUILT)
writing = pytest.importorskip("magnetar.wire.pulsar.hot.compiled.writing", reason=BUILT)

ALL = FrameLimits(6_000_000, verify=True)
LIMITS = st.builds(FrameLimits, st.sampled_from([40, 120, 6_000_000]), st.booleans())
UNSIGNED = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 1 << 62))

# -- in --------------------------------------------------------------------------------------------

SENDS = st.builds(
    peer.send,
    st.sampled_from([0, 3, 3, 3, 200, 1 << 40, (1 << 64) - 1]),
    NUMBERS,
    st.binary(max_size=40),
    checked=st.sampled_from([True, True, True, False]),
)
BATCHES = st.builds(
    peer.send_batch,
    st.sampled_from([3, 300]),
    NUMBERS,
    st.lists(st.binary(max_size=9), min_size=1, max_size=4),
)
CHUNKS = st.builds(lambda number: peer.send(3, number, is_chunk=True), NUMBERS)
ACKS = st.one_of(
    st.builds(lambda consumer, pieces: peer.ack(consumer, *ids_from(pieces)), CONSUMERS, PIECES),
    st.builds(lambda command: peer.frame("ACK", command), ANY),
    st.builds(lambda entry: peer.ack(7, (5, entry)), NUMBERS),
)
ACKS_IN_TRANSACTION = st.builds(
    lambda txn, consumer, entry, request_id: peer.ack_in(
        txn, request_id, consumer, pb.MessageIdData(ledger_id=5, entry_id=entry)
    ),
    st.tuples(st.sampled_from([0, 3, (1 << 64) - 1]), st.sampled_from([7, 1 << 40])),
    st.sampled_from([1, 1, 1, 200]),
    NUMBERS,
    st.one_of(st.integers(100, 120), NUMBERS),
)
FRAMES = st.one_of(SENDS, SENDS, BATCHES, CHUNKS, ACKS, ACKS_IN_TRANSACTION, st.binary(max_size=30))


@st.composite
def damaged(draw, frames=FRAMES) -> bytes:
    """Frames, some bytes of which are others, cut anywhere."""
    data = bytearray(b"".join(draw(st.lists(frames, max_size=6))))
    for _ in range(draw(st.integers(0, 3)) if data else 0):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


def all_offsets(data: bytes) -> list[int]:
    return [*range(min(len(data), 24)), len(data)]


def check_alike(data: bytes, limits: FrameLimits) -> None:
    for offset in all_offsets(data):
        for pure, compiled in (
            (parse_sends, reading.parse_sends),
            (parse_acks, reading.parse_acks),
            (parse_acks_in_transaction, reading.parse_acks_in_transaction),
        ):
            found = compiled(data, offset, limits)
            assert found == pure(data, offset, limits)
            assert offset <= found[0] <= len(data)


@settings(max_examples=400)
@given(damaged(), LIMITS)
def test_what_is_heard(data, limits):
    check_alike(data, limits)


@settings(max_examples=200)
@given(damaged(ACKS_IN_TRANSACTION), LIMITS)
def test_acknowledgements_in_transactions(data, limits):
    check_alike(data, limits)


@given(st.sampled_from([b"\x08\x06\x32", b"\x08\x0a\x52"]), st.binary(max_size=60), LIMITS)
def test_hostile_bytes_behind_the_right_beginning(head, hostile, limits):
    command = head + bytes([len(hostile) & 127]) + hostile
    for size in (len(command) + 4, len(hostile), 1 << 31, (1 << 32) - 1):
        check_alike(pack(">II", size, len(command)) + command, limits)


@given(st.binary(max_size=60), LIMITS)
def test_any_bytes(data, limits):
    check_alike(data, limits)


@pytest.mark.parametrize(
    "sizes",
    [
        [100] * (events.RUN_MESSAGES_MAX + 3),
        [60_000] * 20,
        [events.RUN_BYTES_MAX + 1, 10],
        [10, events.RUN_BYTES_MAX + 1, 10],
        [2_000, 2_032, 2_048, 2_100, 5_000],
    ],
)
def test_runs_end_alike(sizes):
    data = b"".join(peer.send(3, number, b"x" * size) for number, size in enumerate(sizes))
    offset = 0
    while offset < len(data):
        found = reading.parse_sends(data, offset, ALL)
        assert found == parse_sends(data, offset, ALL)
        offset = found[0]


def test_a_consecutive_id_in_a_longer_form_than_need_be():
    ids = b"".join(b"\x1a\x05\x08\x05\x10" + entry for entry in (b"\x85\x00", b"\x86\x00"))
    command = b"\x08\x0a\x52" + bytes([len(ids) + 4]) + b"\x08\x07\x10\x00" + ids
    check_alike(pack(">II", len(command) + 4, len(command)) + command, ALL)


def test_a_size_in_a_longer_form_than_need_be():
    ack = b"\x08\x07\x10\x00\x1a\x04\x08\x05\x10\x09"
    command = b"\x08\x0a\x52" + bytes([len(ack) | 128]) + b"\x00" + ack
    frame = pack(">II", len(command) + 4, len(command)) + command
    expected = events.Acks(7, False, [(5, 9, 9), (5, 9, 9)])
    for parse in (parse_acks, reading.parse_acks):
        assert parse(frame + frame, 0, ALL) == (2 * len(frame), expected)
    check_alike(frame * 3, ALL)


# -- out -------------------------------------------------------------------------------------------


def outcome(function, *arguments):
    """What it returns, or which error it raises."""
    try:
        return function(*arguments)
    except (IndexError, WireError, struct.error) as error:
        return type(error)


@given(UNSIGNED, st.lists(st.binary(max_size=130), max_size=300), UNSIGNED, NUMBERS)
def test_receipts(producer_id, echoes, ledger_id, first):
    for some in (echoes, [echo[:9] for echo in echoes]):
        arguments = (producer_id, some, ledger_id, first)
        expected = outcome(receipts, *arguments)
        assert outcome(writing.receipts, *arguments) == expected


BODIES = st.sampled_from([b"", b"x", b"y" * 100, b"z" * 2048, b"l" * 2049, b"m" * 5000])
SUFFIXES = st.builds(Suffix, st.binary(max_size=12), st.binary(max_size=300))


@given(UNSIGNED, UNSIGNED, NUMBERS, st.lists(st.tuples(BODIES, SUFFIXES), min_size=1, max_size=300))
def test_messages(consumer_id, ledger_id, first, each):
    bodies, suffixes = [body for body, _ in each], [suffix for _, suffix in each]
    for some in (suffixes, suffixes[0]):
        arguments = (consumer_id, ledger_id, first, bodies, some)
        assert writing.messages(*arguments) == messages(*arguments)


def test_large_payloads_are_handed_on():
    large = b"l" * 5000
    assert writing.messages(1, 2, 3, [b"s", large], Suffix(b"", b""))[1] is large


NOTES = st.builds(
    lambda size, note: b"\x0e\x02" + pack(">I", size or len(note)) + note,
    st.sampled_from([0, 0, 0, 5, 1 << 31]),
    st.binary(max_size=20),
)
TAILS = st.one_of(st.binary(max_size=40), st.builds(peer.tail, st.binary(max_size=20)))
STORED = st.builds(lambda note, tail: note + tail, st.one_of(st.just(b""), NOTES), TAILS)


@given(st.lists(STORED, min_size=1, max_size=20))
def test_what_the_broker_noted_is_cut_off(stored):
    expected = outcome(without_broker_part, stored)
    found = outcome(writing.without_broker_part, stored)
    assert found == expected
    assert (found is stored) == (expected is stored)


# -- what is not even bytes ------------------------------------------------------------------------

NO_SUFFIX = Suffix(b"", b"")


@pytest.mark.parametrize("wrong", [None, 5, "text", bytearray(b"x"), [None], ["text"], object()])
@pytest.mark.parametrize(
    "call",
    [
        lambda wrong: reading.parse_sends(wrong, 0, ALL),
        lambda wrong: reading.parse_acks(wrong, 0, ALL),
        lambda wrong: reading.parse_acks_in_transaction(wrong, 0, ALL),
        lambda wrong: writing.receipts(1, wrong, 2, 3),
        lambda wrong: writing.receipts(1, [b"", wrong], 2, 3),
        lambda wrong: writing.messages(1, 2, 3, [b"", wrong], NO_SUFFIX),
        lambda wrong: writing.messages(1, 2, 3, [b""], [(wrong, b"")]),
        lambda wrong: writing.messages(1, 2, 3, [b""], [(b"", wrong)]),
        lambda wrong: writing.messages(1, 2, 3, [b""], Suffix(wrong, b"")),
        lambda wrong: writing.without_broker_part([b"", wrong]),
    ],
)
def test_other_things_are_refused(call, wrong):
    with pytest.raises(TypeError):
        call(wrong)


@pytest.mark.parametrize(
    "parse", [reading.parse_sends, reading.parse_acks, reading.parse_acks_in_transaction]
)
def test_other_limits_are_refused(parse):
    for wrong in (None, 5, "text", (None, True), ("1", True), object()):
        with pytest.raises(TypeError):
            parse(peer.send(3, 5), 0, wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda: reading.parse_sends(b"x" * 40, -1, ALL),
        lambda: reading.parse_sends(b"x" * 40, 41, ALL),
        lambda: reading.parse_acks(b"x" * 40, -1, ALL),
        lambda: reading.parse_acks_in_transaction(b"x" * 40, -1, ALL),
        lambda: reading.parse_acks_in_transaction(b"x" * 40, 41, ALL),
        lambda: reading.parse_acks(b"x" * 40, 1 << 62, ALL),
        lambda: reading.parse_acks(b"x" * 40, 1 << 70, ALL),
        lambda: writing.receipts(-1, [b""], 2, 3),
        lambda: writing.receipts(1 << 64, [b""], 2, 3),
        lambda: writing.receipts(1, [b""], 2, (1 << 64) - 1),
        lambda: writing.messages(1, 2, -3, [b""], NO_SUFFIX),
        lambda: writing.messages(1, 2, 3, [b""], [NO_SUFFIX, NO_SUFFIX]),
        lambda: writing.messages(1, 2, 3, [b""], []),
    ],
)
def test_numbers_out_of_range_are_refused(call):
    with pytest.raises((IndexError, OverflowError, ValueError)):
        call()
