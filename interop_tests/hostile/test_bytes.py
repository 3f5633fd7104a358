"""Bytes that are no frames, frames that are no commands, commands that are out of place.

Each gets the reply the protocol has for it, or a closed connection; a bystander notices nothing.
"""

import random
import socket
from struct import pack

import pytest

from magnetar import standalone
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

SENDS = peer.send(1, 0, b"x" * 100)
FIRST = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "size zero": pack(">I", 0),
    "size one": pack(">I", 1) + b"\0",
    "huge": pack(">II", 0x7FFFFFFF, 10) + bytes(100),
    "huge and negative": pack(">II", 0xFFFFFFFF, 0xFFFFFFFF) + bytes(100),
    "command longer than its frame": pack(">II", 20, 1000) + bytes(20),
    "no protobuf": pack(">II", 104, 100) + b"\xff" * 100,
    "empty command": pack(">II", 4, 0),
    "type without body": pack(">II", 6, 2) + b"\x08\x02",
    "unknown type": pack(">II", 7, 3) + b"\x08\xff\x07",
    "not introduced": peer.ping(),
    "publish at once": SENDS,
}
LATER = {
    "introduced twice": peer.connect(),
    "unknown type": pack(">II", 7, 3) + b"\x08\xff\x07",
    "not for a server": peer.frame("SUCCESS", pb.CommandSuccess(request_id=1)),
    "type and body differ": pack(">II", 8, 4) + b"\x08\x06\x2a\x00",
    "too large": pack(">II", 17 * 1024 * 1024, 20) + bytes(100),
    "no permits": peer.flow(1, 0),
    "size zero": pack(">I", 0),
    "required fields missing": pack(">II", 8, 4) + b"\x08\x04\x22\x00",
}


@pytest.fixture(scope="module")
def magnetar_module():
    """Each mistake is logged: at other levels there are few lines of one kind."""
    with standalone(log={"levels": {"core.kernel.complaints": "debug"}}) as server:
        yield server


def complaints(server, one) -> list[str]:
    """What the server's log says of this peer."""
    host, port = one.socket.getsockname()
    return [line for line in server.logs().splitlines() if f"{host}:{port}: " in line]


@pytest.mark.parametrize("what", FIRST)
def test_first_words(magnetar_module, bystander, raw, what):
    with raw(magnetar_module) as one:
        one.say(FIRST[what])
        one.socket.shutdown(socket.SHUT_WR)
        assert {frame.kind for frame in one.until_closed()} <= {"ERROR"}
        assert len(complaints(magnetar_module, one)) == 1
        bystander.works()


@pytest.mark.parametrize("what", LATER)
def test_later_words(magnetar_module, bystander, raw, what):
    with raw(magnetar_module) as one:
        one.introduce().say(LATER[what])
        assert {frame.kind for frame in one.until_closed()} <= {"ERROR"}
        assert len(complaints(magnetar_module, one)) == 1
        bystander.works()


@pytest.mark.parametrize("what", [peer.connect(), peer.connect() + SENDS], ids=["first", "later"])
def test_cut_anywhere(magnetar_module, bystander, raw, what):
    """The peer goes in the middle of a frame, at every byte."""
    for end in range(1, len(what)):
        with raw(magnetar_module) as one:
            one.say(what[:end])
    bystander.works()


def test_bad_checksum(magnetar_module, bystander, raw, topic):
    """The message is refused by its number, and the next one is taken."""
    with raw(magnetar_module) as one:
        assert one.introduce().ask(peer.producer(1, 1, topic)).kind == "PRODUCER_SUCCESS"
        bad = bytearray(peer.send(1, 0))
        bad[-1] ^= 1
        refused = one.ask(bytes(bad))
        assert (refused.kind, refused.body.error) == ("SEND_ERROR", pb.ChecksumError)
        assert refused.body.sequence_id == 0
        assert one.ask(peer.send(1, 1)).kind == "SEND_RECEIPT"


def test_metadata_that_is_none(magnetar_module, bystander, raw, topic):
    """Sizes inside a message that point outside of it."""
    for body in (b"", b"\0", pack(">I", 1000) + b"x", pack(">I", 0xFFFFFFFF)):
        with raw(magnetar_module) as one:
            assert one.introduce().ask(peer.producer(1, 1, topic)).kind == "PRODUCER_SUCCESS"
            message = pb.CommandSend(producer_id=1, sequence_id=0)
            one.say(peer.frame("SEND", message, body))
            received = {frame.kind for frame in _after(one)}
            assert "SEND_RECEIPT" not in received


def _after(one):
    """What comes before the server closes, or before it answers a ping."""
    one.say(peer.ping())
    found = []
    try:
        while (frame := one.receive()).kind != "PONG":
            found.append(frame)
    except (AssertionError, ConnectionResetError):
        pass  # closed: that is an answer too
    return found


UNKNOWN = {
    "flow": peer.flow(77, 10),
    "ack": peer.ack(77, (1, 1)),
    "redeliver": peer.redeliver(77, (1, 1)),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_unknown_ids_without_answer(magnetar_module, bystander, raw, what):
    with raw(magnetar_module) as one:
        one.introduce().say(UNKNOWN[what])
        assert one.ask(peer.ping()).kind == "PONG"


ASKED = {
    "ack with receipt": (peer.ack(77, (1, 1), request_id=5), "ACK_RESPONSE"),
    "seek": (peer.seek(5, 77, message_publish_time=1), "ERROR"),
    "unsubscribe": (peer.unsubscribe(5, 77), "ERROR"),
    "last id": (peer.get_last_message_id(5, 77), "ERROR"),
    "stats": (peer.consumer_stats(5, 77), "CONSUMER_STATS_RESPONSE"),
    "close consumer": (peer.close_consumer(5, 77), "SUCCESS"),
    "close producer": (peer.close_producer(5, 77), "SUCCESS"),
    "bad name": (peer.lookup(5, "no://such/name/at/all"), "LOOKUP_RESPONSE"),
    "empty name": (peer.partitioned_metadata(5, ""), "PARTITIONED_METADATA_RESPONSE"),
    "produce to a bad name": (peer.producer(5, 1, "a/b"), "ERROR"),
    "subscribe without name": (peer.subscribe(5, 1, "t", ""), "ERROR"),
    "no namespace": (peer.topics_of_namespace(5, "no/such"), "GET_TOPICS_OF_NAMESPACE_RESPONSE"),
}


@pytest.mark.parametrize("what", ASKED)
def test_questions_about_nothing(magnetar_module, bystander, raw, what):
    """The answer is of the kind that goes with the question, and names it."""
    question, kind = ASKED[what]
    with raw(magnetar_module) as one:
        answer = one.introduce().ask(question)
        assert (answer.kind, answer.body.request_id) == (kind, 5)
        assert one.ask(peer.ping()).kind == "PONG"


def test_far_away_positions(magnetar_module, bystander, raw, topic):
    """Ids that no message ever had, acknowledged, asked for again and sought."""
    far = [(2**62, 5), (0, 2**62), (2**63 - 2, 2**63 - 2), (-1, -1), (0, -1)]
    with raw(magnetar_module) as one:
        assert one.introduce().ask(peer.subscribe(1, 1, topic, "s")).kind == "SUCCESS"
        for number, where in enumerate(far):
            one.say(peer.ack(1, where)).say(peer.ack(1, where, cumulative=True))
            one.say(peer.redeliver(1, where))
            assert one.ask(peer.ack(1, where, request_id=number)).kind == "ACK_RESPONSE"
        assert one.ask(peer.ping()).kind == "PONG"
        assert one.ask(peer.producer(9, 9, topic)).kind == "PRODUCER_SUCCESS"
        assert one.ask(peer.send(9, 0, b"still heard")).kind == "SEND_RECEIPT"
        one.say(peer.flow(1, 10))
        assert one.receive().kind == "MESSAGE"


def test_conversations_with_errors(magnetar_module, bystander, raw, topic):
    """An ordinary conversation, of which some bytes are changed: 300 times, never the same."""
    chance = random.Random(7)
    whole = b"".join(
        [
            peer.connect(),
            peer.producer(1, 1, topic),
            peer.subscribe(2, 1, topic, "s", sub_type=pb.CommandSubscribe.SHARED),
            peer.flow(1, 100),
            *(peer.send(1, number) for number in range(5)),
            peer.send_batch(1, 5, [b"a", b"b"]),
            peer.ack(1, (0, 0), request_id=3),
            peer.redeliver(1),
            peer.get_last_message_id(4, 1),
            peer.consumer_stats(5, 1),
            peer.close_consumer(6, 1),
            peer.close_producer(7, 1),
        ]
    )
    for _ in range(300):
        said = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            said[chance.randrange(len(peer.connect()), len(said))] = chance.randrange(256)
        with raw(magnetar_module) as one:
            one.say(bytes(said))
            one.socket.shutdown(socket.SHUT_WR)
            one.until_closed()
    bystander.works()
