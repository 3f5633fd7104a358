"""Who may write: the four access modes of producers, alone and after coming again."""

import socket
import threading
from contextlib import ExitStack

import pulsar
import pytest
from pulsar import ProducerAccessMode

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

from .stock import drain


def test_exclusive_keeps_others_out(client, topic):
    holder = client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic)
    holder.send(b"still mine")
    holder.close()
    client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive).send(b"mine now")


def test_exclusive_does_not_push_in(client, topic):
    shared = client.create_producer(topic)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    shared.send(b"undisturbed")


def test_waiting_in_line(client, topic):
    """Those who wait are served in the order they came, and what each sent stays in order."""
    consumer = client.subscribe(topic, "s")
    holder = client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    got: dict[str, pulsar.Producer] = {}
    turn = {name: threading.Event() for name in "ab"}

    def wait_for_it(name):
        producer = client.create_producer(
            topic, producer_name=name, access_mode=ProducerAccessMode.WaitForExclusive
        )
        got[name] = producer
        turn[name].set()

    first = threading.Thread(target=wait_for_it, args="a")
    first.start()
    holder.send(b"holder")
    assert not got
    holder.close()
    assert turn["a"].wait(15)
    got["a"].send(b"a")
    second = threading.Thread(target=wait_for_it, args="b")
    second.start()
    got["a"].send(b"a still")
    assert not turn["b"].is_set()
    got["a"].close()
    assert turn["b"].wait(15)
    got["b"].send(b"b")
    for thread in (first, second):
        thread.join()
    assert drain(consumer, 4) == [b"holder", b"a", b"a still", b"b"]


def test_the_line_is_served_in_order(server, raw, topic):
    """By hand, as no client tells when it has been put in line."""
    with ExitStack() as stack:
        line = [stack.enter_context(raw(server)).introduce() for _ in range(5)]
        for number, one in enumerate(line):
            answer = one.ask(
                peer.producer(number, 1, topic, producer_access_mode=pb.WAIT_FOR_EXCLUSIVE)
            )
            assert (answer.kind, answer.body.producer_ready) == ("PRODUCER_SUCCESS", number == 0)
        epochs = []
        for number, one in enumerate(line[:-1]):
            one.socket.close()
            answer = line[number + 1].receive()
            assert (answer.kind, answer.body.request_id) == ("PRODUCER_SUCCESS", number + 1)
            assert answer.body.producer_ready
            epochs.append(answer.body.topic_epoch)
        assert epochs == sorted(set(epochs))


def test_waiting_for_nobody(client, topic):
    client.create_producer(topic, access_mode=ProducerAccessMode.WaitForExclusive).send(b"at once")


def test_fencing_takes_over(client, topic):
    consumer = client.subscribe(topic, "s")
    old = client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    old.send(b"old")
    new = client.create_producer(topic, access_mode=ProducerAccessMode.ExclusiveWithFencing)
    new.send(b"new")
    with pytest.raises((pulsar.ProducerFenced, pulsar.AlreadyClosed)):
        old.send(b"too late")
    assert drain(consumer, 2) == [b"old", b"new"]
    newest = client.create_producer(topic, access_mode=ProducerAccessMode.ExclusiveWithFencing)
    newest.send(b"newest")
    assert drain(consumer, 1) == [b"newest"]


def test_a_dead_holder_gives_up_its_places(client, raw, server, topic):
    """Its peer is gone and nobody has said so: clients would take "busy" for final."""
    with raw(server) as dead:
        dead.introduce()
        dead.ask(peer.producer(1, 1, topic, producer_name="p"))
        dead.ask(peer.subscribe(2, 1, topic, "s"))
        dead.socket.shutdown(socket.SHUT_RD)  # what it is asked, it does not hear
        consumer = client.subscribe(topic, "s")
        client.create_producer(topic, producer_name="p").send(b"mine now")
        assert drain(consumer, 1) == [b"mine now"]
    with raw(server) as alive:
        alive.introduce()
        with pytest.raises(pulsar.ConsumerBusy):
            client.subscribe(topic, "s")
