"""A server that is told to stop while peers talk on: what it stored, it has said so."""

import signal
import socket
import threading
import time
from contextlib import suppress

import pulsar
import pytest

from magnetar import standalone
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

from .conftest import MIB

MANY = 10_000
"""Messages whose receipts the system does not hold, nor does the server mind."""
DRAIN_SECONDS = 10.0


@pytest.fixture
def own(tmp_path):
    """A server of this test alone, since it is stopped."""
    with standalone(tmp_path / "data") as server:
        yield server


def test_each_stored_message_has_its_receipt(own, raw, connect, topic):
    """A peer that sends without pause to the end would send again what it was not told of.

    It reads nothing before the stop: most receipts wait on the server's side when that begins.
    """
    with raw(own, receive_bytes=8192) as one:
        requested = peer.producer(1, 1, topic)
        assert one.introduce().ask(requested).kind == "PRODUCER_SUCCESS"
        many = threading.Event()
        pump = threading.Thread(target=sends_for_ever, args=(one.socket, many))
        pump.start()
        assert many.wait(DRAIN_SECONDS)
        own.send_signal(signal.SIGTERM)
        pump.join(0.3)  # by then a server that just closes has cut it off, and the receipts
        received = one.until_closed()
        with suppress(OSError):  # it is gone already, if the server has reset it
            one.socket.shutdown(socket.SHUT_RDWR)
        pump.join()
    assert own.wait() == 0
    receipts = [frame.body.sequence_id for frame in received if frame.kind == "SEND_RECEIPT"]
    assert len(receipts) > 0
    own.start()
    assert count(connect(own.pulsar_url), topic) == len(receipts)
    assert receipts == list(range(len(receipts)))


def sends_for_ever(sock, many):
    """Messages of 100 bytes in order, until the connection is shut."""
    with suppress(OSError):
        for first in range(0, 10**9, 100):
            sock.sendall(b"".join(peer.send(1, first + n, bytes(100)) for n in range(100)))
            if first == MANY:
                many.set()


def count(client, topic):
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    messages = 0
    while reader.has_message_available():
        reader.read_next(15_000)
        messages += 1
    return messages


def test_peers_that_do_not_close_hold_nothing_up(own, raw, topic):
    """One is silent, one never reads what it is sent."""
    with raw(own) as silent, raw(own, receive_bytes=4096) as deaf:
        silent.introduce()
        long = "no://" + "x" * 4000  # the answers say what is wrong with which name
        deaf.introduce().say(b"".join(peer.partitioned_metadata(n, long) for n in range(500)))
        silent.say(peer.ping())
        assert silent.receive().kind == "PONG"
        before = time.monotonic()
        own.send_signal(signal.SIGTERM)
        assert own.wait() == 0
        assert time.monotonic() - before < DRAIN_SECONDS / 2
        assert silent.until_closed() == []


def test_a_refusal_is_heard_by_who_talks_on(raw):
    """One connection too many, with much behind its first words that nobody reads."""
    with standalone(limits={"connections": 1}) as full, raw(full) as inside, raw(full) as one:
        inside.introduce()
        one.socket.sendall(peer.connect() + bytes(16 * MIB))  # a reset would raise
        (refusal,) = one.until_closed()
        assert refusal.body.error == pb.NotAllowedError
