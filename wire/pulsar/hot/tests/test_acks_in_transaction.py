"""ACKs in a transaction by hand, with protobuf as the oracle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.pulsar import commands, events
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.hot import FrameLimits
from magnetar.wire.pulsar.hot.acks_in_transaction import parse_acks_in_transaction
from magnetar.wire.pulsar.hot.tests.test_acks import ANY, NUMBERS, same
from magnetar.wire.pulsar.session.transactions.participation import parted
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.wire import PulsarWire

LIMITS = FrameLimits(6_000_000, verify=True)
FEW = st.one_of(st.integers(0, 300), st.integers(16_000, 16_500))


def ack(consumer: int, entry: int, request_id: int, txn: tuple[int, int] = (3, 7)) -> bytes:
    return peer.ack_in(txn, request_id, consumer, pb.MessageIdData(ledger_id=5, entry_id=entry))


def by_protobuf(frame: bytes) -> events.Acks:
    event = commands.decode(frame[8:])
    assert isinstance(event, events.Acks)
    return event


@given(ANY)
def test_whatever_hand_takes_protobuf_takes_for_the_same(command):
    frame = peer.frame("ACK", command)
    behind, acks = parse_acks_in_transaction(frame, 0, LIMITS)
    assert behind == (0 if acks is None else len(frame))
    assert acks is None or same(acks, by_protobuf(frame))


@given(st.lists(st.tuples(st.sampled_from([1, 1, 1, 200]), FEW, FEW), max_size=20), NUMBERS)
def test_runs_are_what_was_sent(sent, least):
    frames = [ack(consumer, entry, request, (3, least)) for consumer, entry, request in sent]
    wire = PulsarWire()
    wire.feed(peer.connect() + b"".join(frames))
    received = [event for event in wire.take_events() if isinstance(event, events.Acks)]
    heard = [one for acks in received for one in (parted(acks) if acks.joined else (acks,))]
    assert heard == [by_protobuf(frame) for frame in frames]
    for acks in received:
        entries = [(one, at) for one, low, high in acks.ranges for at in range(low, high + 1)]
        assert not acks.joined or entries == [each[1:] for each in acks.joined]


def test_a_run_ends_where_something_differs():
    same_run = [ack(1, entry, entry + 10) for entry in range(50)]
    others = [ack(1, 51, 61, (3, 8)), ack(2, 52, 62), peer.ack(1, (5, 53), request_id=63)]
    for other in others:
        data = b"".join([*same_run, other])
        behind, acks = parse_acks_in_transaction(data, 0, LIMITS)
        assert acks is not None
        assert behind == len(data) - len(other)
        assert acks.ranges == [(5, 0, 49)]
        assert acks.joined == [(entry + 10, 5, entry) for entry in range(50)]


def test_half_of_a_frame_waits():
    data = ack(1, 1, 11) + ack(1, 2, 12)
    for end in range(len(data)):
        behind, acks = parse_acks_in_transaction(data[:end], 0, LIMITS)
        whole = end // (len(data) // 2)
        assert behind == whole * len(data) // 2
        assert (acks is None) is not bool(whole)
