"""The wire as a whole: splits, states, limits, hostile bytes."""

from collections.abc import Callable
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import WireError
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.hot import sequence_of
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.wire import ALLOWED, PulsarWire, Recipient, WireOptions, WireState

EVERYDAY = [
    peer.connect(),
    peer.partitioned_metadata(1, "t"),
    peer.lookup(2, "t"),
    peer.producer(3, 9, "t"),
    *[peer.send(9, number, b"x" * number) for number in range(120, 140)],
    peer.send_batch(9, 140, [b"a", b"b"]),
    peer.subscribe(4, 5, "t", "s"),
    peer.flow(5, 1000),
    peer.ack(5, *[(7, entry) for entry in range(100, 300)]),
    *[peer.ack(5, (7, entry)) for entry in range(300, 310)],
    peer.redeliver(5, (7, 1)),
    peer.ping(),
    peer.send(9, 142, b"y" * 3000),
    peer.close_producer(6, 9),
]


def flat(happened: list[events.Event]) -> list[object]:
    """Events with runs taken apart, since where a run ends depends on how the bytes came."""
    out: list[object] = []
    for event in happened:
        if isinstance(event, events.Sends):
            counts = event.counts or [1] * len(event.payloads)
            out += zip(event.payloads, map(sequence_of, event.sequences), counts, strict=True)
        elif isinstance(event, events.Acks):
            out += [(ledger, n) for ledger, a, b in event.ranges for n in range(a, b + 1)]
        else:
            out.append(event)
    return out


def feed_in_pieces(wire: PulsarWire, data: bytes, cuts: list[int]) -> list[events.Event]:
    """As the link does it: what is not consumed comes again with more behind it."""
    happened: list[events.Event] = []
    left = b""
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        left += data[begin:end]
        left = left[wire.feed(left) :]
        if len(left) >= 4:
            assert wire.frame_bytes_wanted > len(left)
        else:
            assert wire.frame_bytes_wanted == 0
        happened += wire.take_events()
    assert left == b""
    return happened


@given(st.lists(st.integers(0, len(b"".join(EVERYDAY))), max_size=12).map(sorted))
def test_any_split_of_the_bytes_gives_the_same_events(cuts):
    data = b"".join(EVERYDAY)
    whole = flat(feed_in_pieces(PulsarWire(), data, []))
    assert flat(feed_in_pieces(PulsarWire(), data, cuts)) == whole
    assert len(whole) == 1 + 3 + 21 + 2 + 210 + 2 + 1 + 1


def test_a_byte_at_a_time():
    data = b"".join(EVERYDAY)
    one_by_one = feed_in_pieces(PulsarWire(), data, list(range(1, len(data))))
    assert flat(one_by_one) == flat(feed_in_pieces(PulsarWire(), data, []))


# -- states --------------------------------------------------------------------------------------


def connected(**options) -> PulsarWire:
    wire = PulsarWire(WireOptions(**options))
    wire.feed(peer.connect())
    assert [type(event) for event in wire.take_events()] == [events.Connect]
    return wire


def test_every_event_has_its_time():
    assert set(ALLOWED) == set(WireState)
    assert {kind for allowed in ALLOWED.values() for kind in allowed} == set(events.ALL)


@pytest.mark.parametrize("frame", EVERYDAY[1:], ids=range(1, len(EVERYDAY)))
def test_the_first_word_is_connect(frame):
    wire = PulsarWire()
    with pytest.raises(WireError, match="connecting"):
        wire.feed(frame)
    assert wire.state is WireState.CLOSED


def test_nobody_connects_twice():
    wire = connected()
    with pytest.raises(WireError, match="Connect while open"):
        wire.feed(peer.ping() + peer.connect())
    assert wire.take_events() == [events.Ping()]


def test_after_an_error_nothing_is_heard_and_the_last_word_is_sent():
    wire = connected()
    with pytest.raises(WireError):
        wire.feed(peer.connect())
    wire.reply(replies.error(1, pb.UnknownError, "goodbye"))
    with pytest.raises(WireError, match="after the end"):
        wire.feed(peer.ping())
    assert [each.kind for each in peer.parse_frames(wire.take_outgoing())] == ["ERROR"]
    assert wire.take_outgoing() == []


def test_what_only_brokers_say_is_refused():
    clients_say = {"CONNECT", "AUTH_RESPONSE", "PING", "PONG", "CLOSE_PRODUCER", "CLOSE_CONSUMER"}
    for said in (replies.PING, replies.close_producer(1), replies.close_consumer(1)):
        connected().feed(said)
    for said in (
        replies.success(1),
        replies.error(1, pb.UnknownError, ""),
        replies.connected("x", 1, 1),
        replies.active_consumer_change(1, True),
    ):
        assert peer.parse_frames(said)[0].kind not in clients_say
        with pytest.raises(WireError, match="not for clients"):
            connected().feed(said)


# -- limits --------------------------------------------------------------------------------------


def test_a_frame_over_the_limit_is_refused_before_it_has_arrived():
    wire = connected()
    with pytest.raises(WireError, match="over the limit"):
        wire.feed(pack(">I", 16 * 1024 * 1024 + 10 * 1024 + 1))
    connected().feed(pack(">I", 16 * 1024 * 1024 + 10 * 1024))
    with pytest.raises(WireError, match="over the limit"):
        connected(message_bytes_max=1000).feed(peer.send(1, 1, b"x" * 12_000))


def test_the_largest_message_passes():
    wire = connected()
    data = peer.send(1, 1, b"x" * (16 * 1024 * 1024))
    assert wire.feed(data) == len(data)


def test_the_link_learns_how_much_to_receive():
    wire = connected()
    frame = peer.send(1, 1, b"x" * 1_000_000)
    assert wire.feed(peer.ping() + frame[:100]) == len(peer.ping())
    assert wire.frame_bytes_wanted == len(frame)
    assert wire.feed(frame) == len(frame)
    assert wire.frame_bytes_wanted == 0


def test_nothing_is_taken_from_a_client_that_must_be_known_first():
    answer = pb.CommandAuthResponse(response=pb.AuthData(auth_data=b"x"))
    for early in (peer.ping(), peer.send(1, 0), peer.flow(1, 1), peer.connect()):
        wire = PulsarWire(guarded=True)
        wire.feed(peer.connect() + peer.frame("AUTH_RESPONSE", answer))
        with pytest.raises(WireError, match="while authenticating"):
            wire.feed(early)
    wire = PulsarWire(guarded=True)
    wire.feed(peer.connect())
    wire.known()
    assert wire.feed(peer.send(1, 0))


# -- hostile bytes -------------------------------------------------------------------------------


def only_wire_errors(run: Callable[[], object]) -> None:
    with suppress(WireError):
        run()


@given(st.binary(max_size=200))
def test_noise(noise):
    only_wire_errors(lambda: PulsarWire().feed(noise))
    only_wire_errors(lambda: connected().feed(noise))


@given(st.binary(max_size=100), st.sampled_from(range(2, 69)))
def test_noise_in_the_right_place(noise, kind):
    tag = bytes([kind << 3 & 127 | 2 | 128, kind >> 4]) if kind > 15 else bytes([kind << 3 | 2])
    command = b"\x08" + bytes([kind]) + tag + bytes([len(noise)]) + noise
    frame = pack(">II", len(command) + 4, len(command)) + command
    only_wire_errors(lambda: PulsarWire().feed(frame))
    only_wire_errors(lambda: connected().feed(frame))


@given(st.sampled_from(EVERYDAY), st.data())
def test_damaged_frames(frame, data):
    at = data.draw(st.integers(0, len(frame) - 1))
    damaged = frame[:at] + bytes([data.draw(st.integers(0, 255))]) + frame[at + 1 :]
    only_wire_errors(lambda: PulsarWire().feed(damaged))
    only_wire_errors(lambda: connected().feed(damaged + peer.ping()))


NO_COMMAND = {
    "an empty frame": pack(">I", 0),
    "no room for the command's size": pack(">I", 3) + b"\x00\x00\x00",
    "no command": pack(">II", 4, 0),
    "a command longer than its frame": pack(">II", 6, 3) + b"\x08\x12",
    "a type without its command": pack(">II", 6, 2) + b"\x08\x05",
    "a type that does not exist": pack(">II", 9, 5) + b"\x08\x46\xb2\x04\x00",
    "text that is not UTF-8": pack(">II", 15, 11) + b"\x08\x17\xba\x01\x05\x0a\x01\xff\x10\x01",
    "a mode that does not exist": pack(">II", 14, 10) + b"\x08\x04\x22\x06\x18\x09\x20\x01\x28\x01",
}


@pytest.mark.parametrize("data", NO_COMMAND.values(), ids=NO_COMMAND)
def test_what_is_no_command(data):
    with pytest.raises(WireError):
        connected().feed(data + b"\x00" * 8)


def test_text_that_is_not_utf8():
    command = peer.lookup(1, "abcd")[8:].replace(b"abcd", b"ab\xff\xfe")
    with pytest.raises(WireError):
        connected().feed(pack(">II", len(command) + 4, len(command)) + command)


# -- out -----------------------------------------------------------------------------------------


def entries(first: int, *payloads: bytes) -> Slice:
    return Slice(1, first, list(payloads), None)


def test_replies_go_out_in_order():
    wire = connected()
    wire.pong()
    wire.receipts(9, [b"\x07"], 1, 0)
    wire.messages(Recipient(5), entries(0, peer.tail(b"x")))
    wire.reply(replies.success(3))
    wire.ping()
    kinds = [each.kind for each in peer.parse_frames(wire.take_outgoing())]
    assert kinds == ["PONG", "SEND_RECEIPT", "MESSAGE", "SUCCESS", "PING"]


NOTE = b"\x0e\x02\x00\x00\x00\x02\x10\x05"


def test_what_the_broker_noted_is_for_those_who_asked():
    wire = connected()
    stored = NOTE + peer.tail(b"x")
    wire.messages(Recipient(5), entries(0, stored))
    wire.exposes_broker_metadata = True
    wire.messages(Recipient(5), entries(0, stored))
    hidden, shown = peer.parse_frames(wire.take_outgoing())
    assert (hidden.tail, shown.tail) == (stored[8:], stored)
    assert peer.open_tail(shown.tail).broker == pb.BrokerEntryMetadata(index=5)


def test_messages_with_all_their_fields():
    wire = connected()
    tails = [peer.tail(b"x"), peer.tail(b"y")]
    wire.messages(
        Recipient(5, partition=3, epoch=2),
        entries(10, *tails),
        redelivery_counts=[0, 4],
        ack_sets=[None, 0b110],
    )
    first, second = peer.parse_frames(wire.take_outgoing())
    assert (first.tail, second.tail) == tuple(tails)
    assert first.body == pb.CommandMessage(
        consumer_id=5, message_id=peer.message_id(1, 10, partition=3), consumer_epoch=2
    )
    assert second.body == pb.CommandMessage(
        consumer_id=5,
        message_id=peer.message_id(1, 11, partition=3),
        redelivery_count=4,
        ack_set=[0b110],
        consumer_epoch=2,
    )


def test_ack_sets_alone_and_counts_alone():
    wire = connected()
    wire.messages(Recipient(5), entries(0, peer.tail(b"x")), ack_sets=[1])
    wire.messages(Recipient(5), entries(0, peer.tail(b"x")), redelivery_counts=[1])
    wire.messages(Recipient(5), entries(0))
    masked, counted = peer.parse_frames(wire.take_outgoing())
    assert (list(masked.body.ack_set), masked.body.redelivery_count) == ([1], 0)
    assert (list(counted.body.ack_set), counted.body.redelivery_count) == ([], 1)


def test_receipts_of_what_is_not_stored():
    wire = connected()
    wire.receipts_without_id(9, [b"\x07", b"\x08\x20\x09"])
    bodies = [each.body for each in peer.parse_frames(wire.take_outgoing())]
    assert [(each.sequence_id, each.highest_sequence_id) for each in bodies] == [(7, 0), (8, 9)]
    assert all(each.message_id == peer.message_id(-1, -1) for each in bodies)


def test_messages_of_a_transaction_are_one_run() -> None:
    """They are not parsed by hand; joined, they are published like those that are."""
    wire = PulsarWire()
    wire.feed(peer.connect())
    wire.take_events()
    first, other = (0, 1), (0, 2)
    frames = [
        peer.send_in(first, 1, 0, b"a"),
        peer.send_in(first, 1, 1, b"b"),
        peer.send(
            1,
            2,
            peer.batch([b"c", b"d"]),
            about=peer.metadata(2, num_messages_in_batch=2, txnid_most_bits=0, txnid_least_bits=1),
            num_messages=2,
            txnid_most_bits=0,
            txnid_least_bits=1,
        ),
        peer.send_in(first, 1, 4, b"e"),
        peer.send_in(first, 2, 0, b"another producer"),
        peer.send_in(other, 2, 1, b"another transaction"),
        peer.send(2, 2, b"none"),
        peer.send_in(other, 2, 3, b"again"),
    ]
    wire.feed(b"".join(frames))
    seen = [event for event in wire.take_events() if isinstance(event, events.Sends)]
    assert [(run.producer_id, run.txn, len(run.payloads)) for run in seen] == [
        (1, first, 4),
        (2, first, 1),
        (2, other, 1),
        (2, None, 1),
        (2, other, 1),
    ]
    assert seen[0].counts == [1, 1, 2, 1]
    assert seen[1].counts is None
    assert seen[0].size == sum(map(len, seen[0].payloads))
    assert [sequence_of(echo)[0] for echo in seen[0].sequences] == [0, 1, 2, 4]


def test_a_run_of_a_transaction_has_a_limit() -> None:
    wire = PulsarWire()
    wire.feed(peer.connect())
    wire.take_events()
    many = events.RUN_MESSAGES_MAX + 3
    wire.feed(b"".join(peer.send_in((0, 1), 1, at, b"x") for at in range(many)))
    wire.feed(b"".join(peer.send_in((0, 1), 1, at, bytes(600_000)) for at in range(2)))
    sizes = [len(event.payloads) for event in wire.take_events() if isinstance(event, events.Sends)]
    assert sizes == [events.RUN_MESSAGES_MAX, 4, 1]
