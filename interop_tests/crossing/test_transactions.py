"""Transactions of both protocols on one topic: each side sees the same commits, and waits alike.

Python's client for Pulsar has no transactions, so a bare socket begins and ends them; what they
have written is read by stock clients.
"""

from __future__ import annotations

import pulsar
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from interop_tests.raw import Raw
from magnetar import standalone
from magnetar.wire.pulsar.tests import peer

SECONDS = 20
QUIET_SECONDS = 0.3


class Transactional:
    """A producer of Pulsar's that has transactions."""

    def __init__(self, raw: Raw, topic: str) -> None:
        self.raw, self.topic = raw, f"persistent://public/default/{topic}"
        self.sequence_id = -1
        raw.introduce(protocol_version=21)
        assert raw.ask(peer.producer(1, 1, self.topic)).kind == "PRODUCER_SUCCESS"

    def begin(self) -> tuple[int, int]:
        received = self.raw.ask(peer.new_txn(2))
        txn = received.body.txnid_most_bits, received.body.txnid_least_bits
        received = self.raw.ask(peer.add_partitions(3, txn, self.topic))
        assert not received.body.HasField("error"), received
        return txn

    def send(self, *values: bytes, txn: tuple[int, int] | None = None) -> None:
        for value in values:
            self.sequence_id += 1
            plain = peer.send(1, self.sequence_id, value)
            said = plain if txn is None else peer.send_in(txn, 1, self.sequence_id, value)
            assert self.raw.ask(said).kind == "SEND_RECEIPT"

    def end(self, txn: tuple[int, int], *, commit: bool) -> None:
        received = self.raw.ask(peer.end_txn(4, txn, commit=commit))
        assert not received.body.HasField("error"), received


@pytest.fixture
def transactional(server, topic):
    with Raw(server) as raw:
        yield Transactional(raw, topic)


@pytest.fixture
def kafka(server, topic):
    """A Kafka consumer of the topic's beginning, by isolation level."""
    made = []

    def make(isolation: str) -> Consumer:
        options = {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "none",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 50,
            "enable.auto.commit": False,
        }
        made.append(Consumer(options))
        made[-1].assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


@pytest.fixture
def writer(server, topic) -> Producer:
    """A transactional producer of Kafka's."""
    made = Producer({"bootstrap.servers": server.bootstrap_servers, "transactional.id": topic})
    made.init_transactions(SECONDS)
    return made


def values(consumer: Consumer, count: int) -> list[bytes]:
    found = consumer.consume(count, SECONDS)
    assert [message.error() for message in found] == [None] * count
    return [message.value() for message in found]


def read(reader: pulsar.Reader, count: int) -> list[bytes]:
    return [reader.read_next(SECONDS * 1000).data() for _ in range(count)]


def is_quiet(consumer: Consumer) -> bool:
    return consumer.consume(1, QUIET_SECONDS) == []


@pytest.mark.parametrize("commit", [True, False])
def test_of_pulsar_for_kafkas_consumers(transactional, kafka, client, topic, commit) -> None:
    transactional.send(b"before")
    txn = transactional.begin()
    transactional.send(b"1", b"2", txn=txn)
    transactional.send(b"behind")
    committed, everything = kafka("read_committed"), kafka("read_uncommitted")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert values(everything, 4) == [b"before", b"1", b"2", b"behind"]
    assert values(committed, 1) == read(reader, 1) == [b"before"]
    assert is_quiet(committed)
    assert not reader.has_message_available()
    transactional.end(txn, commit=commit)
    left = [b"1", b"2", b"behind"] if commit else [b"behind"]
    assert values(committed, len(left)) == read(reader, len(left)) == left
    transactional.send(b"after")
    assert values(committed, 1) == read(reader, 1) == values(everything, 1) == [b"after"]
    again = values(kafka("read_committed"), len(left) + 2)
    assert again == [b"before", *left, b"after"]


@pytest.mark.parametrize("commit", [True, False])
def test_of_kafka_for_pulsars_consumers(
    transactional, kafka, writer, client, topic, commit
) -> None:
    transactional.send(b"before")
    writer.begin_transaction()
    writer.produce(topic, b"1")
    assert writer.flush(SECONDS) == 0
    transactional.send(b"behind")
    committed = kafka("read_committed")
    consumer = client.subscribe(
        topic, "s", pulsar.ConsumerType.Shared, initial_position=pulsar.InitialPosition.Earliest
    )
    assert values(committed, 1) == [b"before"]
    message = consumer.receive(SECONDS * 1000)
    assert message.data() == b"before"
    consumer.acknowledge(message)
    assert is_quiet(committed)
    with pytest.raises(pulsar.Timeout):
        consumer.receive(int(QUIET_SECONDS * 1000))
    if commit:
        writer.commit_transaction(SECONDS)
    else:
        writer.abort_transaction(SECONDS)
    left = [b"1", b"behind"] if commit else [b"behind"]
    assert values(committed, len(left)) == left
    assert [consumer.receive(SECONDS * 1000).data() for _ in left] == left


def test_open_ones_of_both_hold_all_readers(transactional, kafka, writer, client, topic) -> None:
    """Whoever began first: what is behind waits for both, in whatever order they end."""
    txn = transactional.begin()
    transactional.send(b"pulsar", txn=txn)
    writer.begin_transaction()
    writer.produce(topic, b"kafka")
    assert writer.flush(SECONDS) == 0
    transactional.send(b"plain")
    committed, reader = (
        kafka("read_committed"),
        client.create_reader(topic, pulsar.MessageId.earliest),
    )
    assert is_quiet(committed)
    assert not reader.has_message_available()
    writer.commit_transaction(SECONDS)
    assert is_quiet(committed)
    assert not reader.has_message_available()
    transactional.end(txn, commit=False)
    assert values(committed, 2) == read(reader, 2) == [b"kafka", b"plain"]
    second = transactional.begin()
    writer.begin_transaction()
    writer.produce(topic, b"gone")
    assert writer.flush(SECONDS) == 0
    transactional.send(b"there", txn=second)
    transactional.end(second, commit=True)
    assert is_quiet(committed)
    assert not reader.has_message_available()
    writer.abort_transaction(SECONDS)
    assert values(committed, 1) == read(reader, 1) == [b"there"]


def test_of_kafka_ends_though_its_clients_may_not_connect_any_more(tmp_path, connect) -> None:
    """Else Pulsar's consumers would wait for its end for ever."""
    with standalone(data_dir=tmp_path) as server:
        options = {"transactional.id": "left open", "transaction.timeout.ms": 1_000}
        writer = Producer({"bootstrap.servers": server.bootstrap_servers, **options})
        writer.init_transactions(SECONDS)
        writer.begin_transaction()
        writer.produce("t", b"of the transaction")
        assert writer.flush(SECONDS) == 0
        server.kill()
    with standalone(data_dir=tmp_path, kafka_port=-1) as server:
        client = connect(server.pulsar_url)
        reader = client.create_reader("t", pulsar.MessageId.earliest)
        client.create_producer("t").send(b"behind")
        assert read(reader, 1) == [b"behind"]
