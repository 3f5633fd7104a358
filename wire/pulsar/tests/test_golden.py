"""Frames that the stock Python client 3.13 (C++ core 4.2.0) sent to a server on this wire."""

import pytest

from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.wire import PulsarWire, Recipient

TOPIC = "persistent://public/default/t"
ENCODED_TOPIC = TOPIC.encode().hex()
EARLIEST = events.MessageId(-1, -1)

CONNECT = (
    "0000002900000025080212210a1150756c7361722d4350502d76342e322e3020142a046e6f6e65520408011001"
)

FRAMES = [
    (
        f"0000002a000000260815aa01210a1d{ENCODED_TOPIC}1001",
        events.PartitionedMetadata(1, TOPIC),
    ),
    (f"0000002e0000002a0817ba01250a1d{ENCODED_TOPIC}100218003a00", events.Lookup(2, TOPIC)),
    (
        f"000000330000002f08052a2b0a1d{ENCODED_TOPIC}100018002800400048005000",
        events.Producer(0, 0, TOPIC, name_is_users=False),
    ),
    (
        f"000000500000004c080422480a1d{ENCODED_TOPIC}"
        "120373756218012000280232"
        + "0a66626465303561366562"
        + "3800400152060a0178120179580068017000",
        events.Subscribe(
            2,
            0,
            TOPIC,
            "sub",
            events.SubscriptionType.SHARED,
            consumer_name="fbde05a6eb",
            from_earliest=True,
            metadata={"x": "y"},
        ),
    ),
    ("0000000d00000009080b5a05080010e807", events.Flow(0, 1000)),
    (
        "000000200000001c080a5218080010001a04080510001a04080510011a06080510032805",
        events.Acks(0, False, [(5, 0, 1)], [(5, 3, 0b101, 0)]),
    ),
    (
        "000000110000000d0814a201080800120408051002",
        events.Redeliver(0, (events.MessageId(5, 2),)),
    ),
    ("0000000d00000009081dea010408001003", events.GetLastMessageId(3, 0)),
    (
        "0000002500000021081ce2011c080010041a1608ffffffffffffffffff0110ffffffffffffffffff01",
        events.Seek(4, 0, EARLIEST),
    ),
    ("0000000d00000009081082010408001006", events.CloseConsumer(6, 0)),
    ("0000000c00000008080f7a0408001007", events.CloseProducer(7, 0)),
]

TAILS = [
    "0e013d1383e90000001c0a0670726f642d31100018f7b5c0ef9f3422060a016112016232016b68656c6c6f2030",
    "0e01e2d684e50000001c0a0670726f642d31100118f7b5c0ef9f3422060a016112016232016b68656c6c6f2031",
]
SENDS = [
    "0000003900000008080632040800" + "1000" + TAILS[0],
    "0000003900000008080632040800" + "1001" + TAILS[1],
]
BATCH_TAIL = (
    "0e019eb4e521000000130a0670726f642d31100018f8b5c0ef9f345803"
    "000000041802400062300000000418024001623100000004180240026232"
)
BATCH = "000000490000000a08063206080110001803" + BATCH_TAIL


def received(*frames: str) -> list[events.Event]:
    wire = PulsarWire()
    data = bytes.fromhex(CONNECT + "".join(frames))
    assert wire.feed(data) == len(data)
    return wire.take_events()


def test_connect() -> None:
    (connect,) = received()
    assert connect == events.Connect(
        client_version="Pulsar-CPP-v4.2.0",
        protocol_version=20,
        auth_method="none",
        auth_data=b"",
        features=events.Features(auth_refresh=True, broker_entry_metadata=True),
    )


@pytest.mark.parametrize(("frame", "event"), FRAMES)
def test_commands(frame: str, event: events.Event) -> None:
    assert received(frame)[1:] == [event]


def test_sends_become_one_run() -> None:
    expected = events.Sends(
        0,
        [bytes.fromhex(tail) for tail in TAILS],
        [b"\x00", b"\x01"],
        size=len("".join(TAILS)) // 2,
    )
    assert received(*SENDS)[1:] == [expected]


def test_a_batch_counts_its_messages() -> None:
    expected = events.Sends(
        1, [bytes.fromhex(BATCH_TAIL)], [b"\x00"], len(BATCH_TAIL) // 2, counts=[3]
    )
    assert received(BATCH)[1:] == [expected]


def test_what_it_took() -> None:
    """The client took these bytes for the receipt and the message they are."""
    wire = PulsarWire()
    wire.receipts(0, [b"\x00", b"\x01"], 5, 0)
    wire.messages(Recipient(0), Slice(5, 0, [bytes.fromhex(TAILS[0])], None))
    receipts, message = wire.take_outgoing()
    first = "000000120000000e" + "08073a0a" + "0800" + "1000" + "1a04" + "0805" + "1000"
    second = "000000120000000e" + "08073a0a" + "0800" + "1001" + "1a04" + "0805" + "1001"
    assert receipts.hex() == first + second
    assert (
        message.hex() == "0000003d0000000c" + "08094a08" + "0800" + "1204" + "08051000" + TAILS[0]
    )
