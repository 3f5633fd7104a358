"""Peers that never read, never speak, speak too slowly, or are gone: none costs the others."""

import resource
import select
import socket
from contextlib import ExitStack
from itertools import zip_longest
from struct import pack

import pytest

from magnetar import standalone
from magnetar.core.kernel.complaints import LINES_MAX
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

from .conftest import MIB, rss
from .test_kafka_bytes import Peer as Kafka

SILENT_CONNECTIONS = 10_000
"""As many as a server takes, unless told."""
SILENT_BYTES_MAX = 12 * 1024
"""Of the server's memory for each."""
INTRODUCED_CONNECTIONS = 1_000
OUR_FILES = 500
"""Open files of the tests' own process, besides its connections."""


def test_consumer_that_never_reads(magnetar_module, bystander, raw, connect, topic):
    """It is sent what the socket and the outbox hold; the rest of 96 MB stays where it is."""
    client = connect(magnetar_module.pulsar_url)
    client.subscribe(topic, "s").close()
    producer = client.create_producer(topic, batching_enabled=False)
    for _ in range(96):
        producer.send_async(bytes(MIB), None)
    producer.flush()
    before = rss(magnetar_module)
    with raw(magnetar_module) as one:
        requested = peer.subscribe(1, 1, topic, "s", initial_position=1)
        assert one.introduce().ask(requested).kind == "SUCCESS"
        one.say(peer.flow(1, 1_000_000))
        assert select.select([one.socket], [], [], 15)[0]
        for _ in range(20):
            bystander.works()
        assert rss(magnetar_module) - before < 48 * MIB


def test_asker_that_never_reads(magnetar_module, bystander, raw):
    """Answers pile up to a limit; from there on its questions are not read any more."""
    long = "no://" + "x" * 4000  # the answers say what is wrong with which name
    questions = b"".join(peer.partitioned_metadata(n, long) for n in range(500))
    with raw(magnetar_module, receive_bytes=4096) as one:
        assert is_held(one.introduce(), questions, bystander)


@pytest.mark.parametrize("scheme", ["persistent", "non-persistent"])
def test_publisher_that_never_reads(magnetar_module, bystander, raw, topic, scheme):
    """Its receipts pile up as far, and not its messages."""
    before = rss(magnetar_module)
    with raw(magnetar_module, receive_bytes=4096) as one:
        requested = peer.producer(1, 1, f"{scheme}://public/default/{topic}")
        assert one.introduce().ask(requested).kind == "PRODUCER_SUCCESS"
        messages = b"".join(peer.send(1, number, b"x") for number in range(500))
        assert is_held(one, messages, bystander)
        assert rss(magnetar_module) - before < 48 * MIB


def is_held(one, words, bystander) -> bool:
    """Whether the server stops reading who says these over and over, and hears nothing."""
    one.socket.setblocking(False)
    sent = 0
    while sent < 256 * MIB:
        try:
            sent += one.socket.send(words[sent % len(words) :])
        except BlockingIOError:
            # not writable for as long as the bystander needs for ten messages: it is held
            for _ in range(10):
                bystander.works()
            if not select.select([], [one.socket], [], 0)[1]:
                return True
    return False


def test_peer_that_vanishes(magnetar_module, bystander, raw, topic):
    """Reset in the middle of a message: its name is free again, its consumer is gone."""
    for _ in range(20):
        with raw(magnetar_module) as one:
            requested = peer.producer(1, 1, topic, producer_name="me")
            assert one.introduce().ask(requested).kind == "PRODUCER_SUCCESS"
            assert one.ask(peer.subscribe(2, 1, topic, "s")).kind == "SUCCESS"
            one.say(peer.flow(1, 100))
            one.say(peer.send(1, 0, bytes(1000))[:500])
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
    bystander.works()


@pytest.fixture
def many_files():
    """Leave for this process to hold all those connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < SILENT_CONNECTIONS + OUR_FILES:
        pytest.skip(f"this system allows a process {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_many_that_say_nothing(magnetar_module, bystander, raw, many_files):
    """Whoever is at work goes on; one more is told that there is no room; a place is soon free."""
    before, log = rss(magnetar_module), len(magnetar_module.logs())
    with ExitStack() as stack:
        silent = [stack.enter_context(raw(magnetar_module)) for _ in range(SILENT_CONNECTIONS)]
        bystander.works()
        with raw(magnetar_module) as one:
            answer = one.ask(peer.connect())
            assert (answer.kind, answer.body.error) == ("ERROR", pb.NotAllowedError)
        assert rss(magnetar_module) - before < SILENT_CONNECTIONS * SILENT_BYTES_MAX
        for one in silent[:100]:
            one.socket.close()
        bystander.works()
        with raw(magnetar_module) as one:
            one.introduce()
    bystander.works()
    said = magnetar_module.logs()[log:].splitlines()
    assert 1 <= len(said) <= 20, "a line for each that was refused, none for the silent ones"


def test_many_that_only_introduce_themselves(magnetar_module, bystander, raw):
    before = rss(magnetar_module)
    with ExitStack() as stack:
        for _ in range(INTRODUCED_CONNECTIONS):
            stack.enter_context(raw(magnetar_module)).introduce()
        bystander.works()
        assert rss(magnetar_module) - before < INTRODUCED_CONNECTIONS * SILENT_BYTES_MAX


def test_slow_speaker(magnetar_module, bystander, raw, topic):
    """Byte by byte, several at once, and each is understood."""
    with ExitStack() as stack:
        speakers = [stack.enter_context(raw(magnetar_module)) for _ in range(5)]
        for one in speakers:
            one.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        spell(speakers, lambda number: peer.connect() + peer.producer(1, 1, f"{topic}-{number}"))
        for one in speakers:
            assert [one.receive().kind for _ in range(2)] == ["CONNECTED", "PRODUCER_SUCCESS"]
        spell(speakers, lambda _: peer.send(1, 0) + peer.send(1, 1))
        for one in speakers:
            assert [one.receive().kind for _ in range(2)] == ["SEND_RECEIPT"] * 2


def spell(speakers, words):
    """All say theirs at once, a byte at a time."""
    for bytes_of_all in zip_longest(*(words(number) for number in range(len(speakers)))):
        for one, byte in zip(speakers, bytes_of_all, strict=True):
            if byte is not None:
                one.say(bytes([byte]))


def test_half_a_large_frame(magnetar_module, bystander, raw, topic):
    """A hundred peers announce five megabytes and send little: little is what they take."""
    before = rss(magnetar_module)
    start = peer.send(1, 0, bytes(5 * MIB - 1024))[: 16 * 1024]
    with ExitStack() as stack:
        for number in range(100):
            one = stack.enter_context(raw(magnetar_module))
            requested = peer.producer(1, 1, f"{topic}-{number}")
            assert one.introduce().ask(requested).kind == "PRODUCER_SUCCESS"
            one.say(start)
        bystander.works()
        assert rss(magnetar_module) - before < 48 * MIB


def test_flood_of_attachments(magnetar_module, bystander, raw, topic):
    """The same ids over and over: each is answered, one is attached."""
    with raw(magnetar_module) as one:
        one.introduce().say(b"".join(peer.producer(n, 1, topic) for n in range(500)))
        kinds = {one.receive().kind for _ in range(500)}
        assert "PRODUCER_SUCCESS" in kinds
        assert kinds <= {"PRODUCER_SUCCESS", "ERROR"}
        requested = [peer.subscribe(n, 1, topic, "s") for n in range(500)]
        one.say(b"".join(requested))
        kinds = {one.receive().kind for _ in range(500)}
        assert kinds <= {"SUCCESS", "ERROR"}


# -- limits of an own server ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict():
    """A server that waits half a second for a sign of life, and has room for a few."""
    with standalone(limits={"keep_alive_seconds": 0.5, "connections": 20}) as server:
        yield server


def test_who_says_nothing_must_go(strict, raw):
    with raw(strict) as one:
        assert {frame.kind for frame in one.until_closed()} <= {"ERROR"}


@pytest.mark.parametrize("words", [b"", b"\0", b"\0\0\0\x10\0\x12"])
def test_who_asks_kafka_for_nothing_must_go(strict, words):
    """Nor may it, by one byte now and then of a request that never ends."""
    with Kafka(strict) as one:
        one.say(words)
        assert one.is_closed()


def test_the_same_mistake_is_not_logged_each_time(strict):
    before = len(strict.logs())
    for _ in range(300):
        with Kafka(strict) as one:
            one.say(b"\xff" * 8)
            assert one.is_closed()
    said = strict.logs()[before:]
    assert 1 <= said.count("closed: a frame of -1 bytes") <= LINES_MAX
    assert "Traceback" not in said


def test_who_does_not_answer_must_go(strict, raw):
    with raw(strict) as one:
        assert [frame.kind for frame in one.introduce().until_closed()] == ["PING"]


def test_who_answers_may_stay(strict, raw):
    with raw(strict) as one:
        one.introduce()
        for _ in range(4):
            assert one.receive().kind == "PING"
            one.say(peer.pong())


def test_no_more_than_there_is_room_for(strict, raw):
    """One more is refused, and let in when another has left."""
    with ExitStack() as stack:
        inside = [stack.enter_context(raw(strict)).introduce() for _ in range(20)]
        with raw(strict) as one:
            one.say(peer.connect())
            received = one.until_closed()
            assert [frame.body.error for frame in received] in ([], [pb.NotAllowedError])
        inside[0].socket.close()
        inside[1].say(peer.ping())
        while inside[1].receive().kind != "PONG":
            pass
        with raw(strict) as one:
            one.introduce()
