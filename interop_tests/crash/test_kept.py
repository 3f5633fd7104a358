"""What a server still knows after it was stopped in order, or killed.

After an orderly stop that is everything. After a kill it is what was confirmed: messages by their
receipts, acknowledgements by theirs, seeking and unsubscribing by their answers.
"""

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

RECEIVE_MS = 15_000
SHARED = pb.CommandSubscribe.SHARED
MODES = pb.ProducerAccessMode


@pytest.fixture(params=["stopped", "killed"])
def again(request, magnetar_module):
    """Ends the server the one way or the other, and starts it again."""

    def end_and_start():
        if request.param == "killed":
            magnetar_module.kill()
            magnetar_module.start()
        else:
            magnetar_module.restart()

    return end_and_start


@pytest.fixture
def client(magnetar_module, connect):
    return connect(magnetar_module.pulsar_url)


def bodies(consumer, count):
    return [consumer.receive(RECEIVE_MS).data() for _ in range(count)]


def publish(client, topic, count, **options):
    producer = client.create_producer(topic, **options)
    ids = []
    for number in range(count):
        producer.send_async(b"%d" % number, lambda result, each: ids.append((result, each)))
    producer.flush()
    assert {result for result, _ in ids} == {pulsar.Result.Ok}
    return [each for _, each in ids]


def test_messages_and_subscriptions(client, topic, again):
    """Also of subscriptions to which nobody is attached."""
    names = ["one", "two"]
    for name in names:
        client.subscribe(topic, name).close()
    publish(client, topic, 50)
    again()
    for name in names:
        assert bodies(client.subscribe(topic, name), 50) == [b"%d" % n for n in range(50)]


def test_unsubscribed_stays_so(client, topic, again):
    client.subscribe(topic, "keeper").close()
    client.subscribe(topic, "s").unsubscribe()
    publish(client, topic, 3)
    again()
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"new")
    assert bodies(consumer, 1) == [b"new"]


def test_seek(client, topic, again):
    consumer = client.subscribe(topic, "s", start_message_id_inclusive=True)
    ids = publish(client, topic, 20, batching_enabled=False)
    bodies(consumer, 20)
    consumer.seek(ids[12])
    again()
    consumer.close()
    assert bodies(client.subscribe(topic, "s"), 8) == [b"%d" % n for n in range(12, 20)]


def test_clients_go_on(client, topic, again):
    """A consumer that was there before goes on afterwards, without being told."""
    consumer = client.subscribe(topic, "s", ConsumerType.Shared)
    producer = client.create_producer(topic)
    producer.send(b"before")
    again()
    producer.send(b"after")
    found = set()
    while found != {b"before", b"after"}:  # what was not acknowledged comes again
        message = consumer.receive(RECEIVE_MS)
        found.add(message.data())
        consumer.acknowledge(message)


def test_reader_goes_on(client, topic, again):
    client.subscribe(topic, "keeper").close()
    publish(client, topic, 10, batching_enabled=False)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert [reader.read_next(RECEIVE_MS).data() for _ in range(10)] == [
        b"%d" % n for n in range(10)
    ]
    again()
    client.create_producer(topic).send(b"after")
    assert reader.read_next(RECEIVE_MS).data() == b"after"


def test_ids_go_up(client, topic, again):
    client.subscribe(topic, "keeper").close()
    before = publish(client, topic, 3)
    again()
    after = publish(client, topic, 3)
    keys = [(each.ledger_id(), each.entry_id(), each.batch_index()) for each in before + after]
    assert keys == sorted(set(keys))


def test_new_subscription_reads_the_past(client, topic, again):
    client.subscribe(topic, "keeper").close()
    publish(client, topic, 100)
    again()
    consumer = client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
    assert bodies(consumer, 100) == [b"%d" % n for n in range(100)]


# -- with receipts, and with epochs: for these the protocol is spoken by hand ----------------------


def attach(raw, topic):
    requested = peer.subscribe(1, 1, topic, "s", sub_type=SHARED, initial_position=1)
    assert raw.ask(requested).kind == "SUCCESS"


def acknowledge(raw, *ids, **fields):
    reply = raw.ask(peer.ack(1, *ids, request_id=9, **fields))
    assert reply.kind == "ACK_RESPONSE"
    assert not reply.body.HasField("error")


def test_holes(magnetar_module, client, topic, again, raw):
    """Acknowledged one by one: every third message is left."""
    ids = publish(client, topic, 30, batching_enabled=False)
    with raw(magnetar_module) as one:
        attach(one.introduce(), topic)
        done = [each for number, each in enumerate(ids) if number % 3]
        acknowledge(one, *((each.ledger_id(), each.entry_id()) for each in done))
        again()
    consumer = client.subscribe(topic, "s", ConsumerType.Shared)
    assert bodies(consumer, 10) == [b"%d" % number for number in range(0, 30, 3)]


def test_indexes_of_a_batch(magnetar_module, client, topic, again, raw):
    options = {"batching_max_messages": 10, "batching_max_publish_delay_ms": 60_000}
    ids = publish(client, topic, 10, batching_enabled=True, **options)
    with raw(magnetar_module) as one:
        attach(one.introduce(), topic)
        left = 0b0110010001  # set: not acknowledged
        where = ids[0]
        part = peer.message_id(where.ledger_id(), where.entry_id(), ack_set=[left], batch_size=10)
        acknowledge(one, part)
        again()
    consumer = client.subscribe(topic, "s", ConsumerType.Shared, batch_index_ack_enabled=True)
    assert bodies(consumer, 4) == [b"0", b"4", b"7", b"8"]


def test_epochs_of_exclusive_producers(magnetar_module, topic, again, raw):
    """Who was fenced before stays fenced; who fenced may go on."""

    def attach_producer(number, mode, epoch=None):
        fields = {} if epoch is None else {"topic_epoch": epoch}
        with raw(magnetar_module) as one:
            requested = peer.producer(number, number, topic, producer_access_mode=mode, **fields)
            return one.introduce().ask(requested)

    with raw(magnetar_module) as old, raw(magnetar_module) as young:
        first = old.introduce().ask(
            peer.producer(1, 1, topic, producer_access_mode=MODES.Value("EXCLUSIVE_ACCESS"))
        )
        assert first.kind == "PRODUCER_SUCCESS"
        second = young.introduce().ask(
            peer.producer(2, 2, topic, producer_access_mode=MODES.Value("EXCLUSIVE_WITH_FENCING"))
        )
        assert second.body.topic_epoch > first.body.topic_epoch
        again()
    stale = attach_producer(3, MODES.Value("EXCLUSIVE_ACCESS"), first.body.topic_epoch)
    assert (stale.kind, stale.body.error) == ("ERROR", pb.ProducerFenced)
    fresh = attach_producer(4, MODES.Value("EXCLUSIVE_ACCESS"), second.body.topic_epoch)
    assert fresh.kind == "PRODUCER_SUCCESS"
