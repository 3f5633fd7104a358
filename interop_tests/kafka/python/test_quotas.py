"""librdkafka and kafka-python, held to quotas of their client ids and told so."""

import socket
import time
import warnings

import httpx
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from interop_tests.kafka.quotas import asked, limit
from magnetar import standalone
from magnetar.wire.kafka.messages.quotas import DescribeClientQuotasRequest
from magnetar.wire.kafka.tests.frame import framed

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SECONDS = 30
RATE = 100_000
"""Bytes a second; ten times as many may go at once."""
VALUE = b"x" * RATE
BEYOND = 13
"""Records of `VALUE`, three more than may go at once: the last two wait 1 s and 2 s."""
LEAST_SECONDS = 2.5


class Told:
    """The throttle times that a client of librdkafka is told, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, event: object) -> None:
        self.seconds.append(event.throttle_time)


@pytest.fixture
def producer(server):
    """Makes producers that send a record at a time."""

    def make(client_id, told):
        return Producer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "client.id": client_id,
                "batch.num.messages": 1,
                "max.in.flight.requests.per.connection": 1,
                "throttle_cb": told,
                "log_level": 0,
            }
        )

    return make


def sent(producer, topic, count):
    """The seconds that it takes."""
    begun, errors = time.monotonic(), []
    for _ in range(count):
        producer.produce(
            topic, VALUE, partition=0, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(SECONDS) == 0
    assert errors == [None] * count
    return time.monotonic() - begun


def counted(server, name, quota="producer_byte_rate"):
    """One of the metrics of a kind of quota."""
    begin = f'magnetar_quota_{name}_total{{quota="{quota}"}} '
    page = httpx.get(f"{server.http_url}/metrics").text
    (line,) = [line for line in page.splitlines() if line.startswith(begin)]
    return float(line.removeprefix(begin))


def test_a_producer_of_librdkafka_and_its_neighbour(server, producer, topic):
    before = counted(server, "throttles"), counted(server, "throttled_seconds")
    held, free = Told(), Told()
    one, other = producer(topic, held), producer(f"{topic}-other", free)
    sent(one, topic, 1)
    sent(other, topic, 1)
    assert not held.seconds
    limit(server.bootstrap_servers, topic, producer_byte_rate=RATE)
    for _ in range(BEYOND):
        one.produce(topic, VALUE, partition=0)
    deadline = time.monotonic() + SECONDS
    while not held.seconds:
        one.poll(0.1)
        assert time.monotonic() < deadline
    sent(other, topic, BEYOND)
    assert len(one), "it is still held"
    assert one.flush(SECONDS) == 0
    assert held.seconds
    assert not free.seconds
    assert counted(server, "throttles") > before[0]
    assert counted(server, "throttled_seconds") - before[1] > max(held.seconds) - 0.01
    limit(server.bootstrap_servers, topic, producer_byte_rate=None)
    begun, told = time.monotonic(), len(held.seconds)
    sent(one, topic, BEYOND)
    one.poll(0)
    assert len(held.seconds) <= told + 2, "what was told before may have come since"
    assert time.monotonic() - begun < SECONDS


def test_a_consumer_of_librdkafka(server, producer, made, topic):
    made(topic, 1)
    sent(producer(f"{topic}-producer", Told()), topic, BEYOND)
    limit(server.bootstrap_servers, topic, consumer_byte_rate=RATE)
    told = Told()
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "nobody",
            "client.id": topic,
            "fetch.max.bytes": RATE + 1000,
            "message.max.bytes": RATE + 1000,
            "throttle_cb": told,
        }
    )
    begun = time.monotonic()
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values = [consumer.poll(SECONDS).value() for _ in range(BEYOND)]
    elapsed = time.monotonic() - begun
    consumer.close()
    assert values == [VALUE] * BEYOND, "nothing is lost"
    assert elapsed > LEAST_SECONDS
    assert any(seconds > 0 for seconds in told.seconds)


def test_kafka_python_is_told(server, topic):
    limit(server.bootstrap_servers, topic, producer_byte_rate=RATE)
    producer = KafkaProducer(
        bootstrap_servers=server.bootstrap_servers,
        client_id=topic,
        batch_size=0,
        max_in_flight_requests_per_connection=1,
    )
    begun = time.monotonic()
    for _ in range(BEYOND):
        producer.send(topic, VALUE, partition=0).get(SECONDS)
    elapsed = time.monotonic() - begun
    told = [group.get("throttle-time-max", 0) for group in producer.metrics().values()]
    producer.close()
    assert max(told) >= 1000
    assert elapsed > LEAST_SECONDS


def test_connections_of_an_address():
    """The first ten of a second are served, the next is closed without a word."""
    with standalone() as server:
        servers = server.bootstrap_servers
        limit(servers, "127.0.0.1", "ip", connection_creation_rate=1)
        question = DescribeClientQuotasRequest(components=[], strict=False)
        for _ in range(10):
            assert asked(servers, question).entries
        host, _, port = servers.rpartition(":")
        begun = time.monotonic()
        with socket.create_connection((host, int(port)), SECONDS) as peer:
            peer.sendall(framed(question, 1))
            assert peer.recv(65536) == b""
        assert 0.5 < time.monotonic() - begun < SECONDS
