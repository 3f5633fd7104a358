"""With the hot forms and without them: the same is heard."""

from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.hot import sequence_of
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.wire import PulsarWire, WireOptions

FRAMES = [
    b"".join(peer.send(3, number, b"x" * (number % 7)) for number in range(125, 131)),
    peer.send_batch(3, 5, [b"a", b"b"]) + peer.send(3, 9),
    peer.send(300, 1 << 40) + peer.send(300, 1 << 40 | 1),
    peer.send(3, 7, is_chunk=True) + peer.send(3, 8, checked=False),
    peer.ack(7, *[(5, entry) for entry in range(120, 140)]),
    peer.ack(7, *[(5, entry) for entry in (1, 3, 2, 300, 5)]),
    b"".join(peer.ack(7, (5, entry)) for entry in range(126, 130)),
    peer.ack(7, (5, 9), cumulative=True) + peer.ack(7, (5, 9), request_id=4),
    peer.ack(7, peer.message_id(5, 9, ack_set=[5], batch_size=3)),
    peer.flow(7, 1000) + peer.flow(300, 1),
]


def hear(data: bytes, by_hand: bool) -> list[object]:
    wire = PulsarWire(WireOptions(message_bytes_max=100_000))
    wire.feed(peer.connect())
    wire.take_events()
    if not by_hand:
        wire._hot = {}  # the one place that knows the other way round
    received: list[object] = []
    try:
        received.append(("consumed", wire.feed(data)))
    except WireError:
        received.append("refused")
    for event in wire.take_events():
        received += flat(event)
    return received


def flat(event: events.Event) -> list[object]:
    """Where runs end is not what is compared."""
    if isinstance(event, events.Sends):
        counts = event.counts or [1] * len(event.payloads)
        return [
            (event.producer_id, payload, sequence_of(echo), count, event.chunks, event.txn)
            for payload, echo, count in zip(event.payloads, event.sequences, counts, strict=True)
        ]
    if isinstance(event, events.Acks):
        rest = (event.consumer_id, event.cumulative, event.txn, event.request_id)
        ids = sorted(
            (ledger, entry)
            for ledger, first, last in event.ranges
            for entry in range(first, last + 1)
        )
        return [(rest, each) for each in [*dict.fromkeys(ids), *event.partial]]
    return [event]


def in_sets(received: list[object]) -> list[object]:
    """The ids of one command may come in any order."""
    acks = [each for each in received if isinstance(each, tuple) and isinstance(each[0], tuple)]
    return [each for each in received if each not in acks] + sorted(set(acks), key=repr)


@settings(max_examples=300)
@given(st.data())
def test_damage_is_judged_alike(data):
    frames = bytearray(b"".join(data.draw(st.lists(st.sampled_from(FRAMES), max_size=4))))
    for _ in range(data.draw(st.integers(0, 3)) if frames else 0):
        frames[data.draw(st.integers(0, len(frames) - 1))] = data.draw(st.integers(0, 255))
    received = in_sets(hear(bytes(frames), by_hand=True))
    assert received == in_sets(hear(bytes(frames), by_hand=False))


def test_without_damage():
    frames = b"".join(FRAMES)
    received = in_sets(hear(frames, by_hand=True))
    assert ("consumed", len(frames)) in received
    assert received == in_sets(hear(frames, by_hand=False))
