"""Pulsar's Python client, which is its C++ client: who it is, and what it may do."""

import time
from concurrent.futures import ThreadPoolExecutor

import pulsar
import pytest

from .pulsar_people import token

RECEIVE_MS = 15_000
DEADLINE_SECONDS = 10
HASTY = {"operation_timeout_seconds": 2, "connection_timeout_ms": 1_000}


@pytest.fixture
def client_of(connect, server):
    """Makes clients with a name, which is in their token."""
    return lambda name, **options: connect(
        server.pulsar_url, authentication=pulsar.AuthenticationToken(token(name)), **options
    )


def exchange(client, topic, body=b"hello"):
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(body)
    assert consumer.receive(RECEIVE_MS).data() == body


def test_a_token(client_of, administrator, topic):
    administrator.grant("alice", "produce", "consume")
    exchange(client_of("alice"), topic)


def test_a_password(connect, server, administrator, topic):
    administrator.grant("bob", "produce", "consume")
    basic = pulsar.AuthenticationBasic("bob", "builder")
    exchange(connect(server.pulsar_url, authentication=basic), topic)


def test_who_cannot_prove_anything_stays_outside(connect, server, topic):
    """All at a time, since this client tries again until its operations time out."""
    wrong = (
        None,
        pulsar.AuthenticationBasic("bob", "wrong"),
        pulsar.AuthenticationToken(token("root", secret=b"x" * 32)),
        pulsar.AuthenticationToken(token("root", seconds=-60)),
    )
    clients = [connect(server.pulsar_url, authentication=proof, **HASTY) for proof in wrong]
    with ThreadPoolExecutor() as threads:
        for attempt in [threads.submit(each.create_producer, topic) for each in clients]:
            with pytest.raises(pulsar.PulsarException):
                attempt.result()


def test_what_is_not_permitted(client_of, administrator, topic):
    administrator.grant("writer", "produce")
    administrator.grant("reader", "consume")
    client_of("writer").create_producer(topic).send(b"for the reader")
    with pytest.raises(pulsar.AuthorizationError):
        client_of("writer").subscribe(topic, "s")
    with pytest.raises(pulsar.AuthorizationError):
        client_of("reader").create_producer(topic)
    with pytest.raises(pulsar.AuthorizationError):
        client_of("stranger").get_topic_partitions(topic)
    consumer = client_of("reader").subscribe(
        topic, "s", initial_position=pulsar.InitialPosition.Earliest
    )
    assert consumer.receive(RECEIVE_MS).data() == b"for the reader"


def test_rights_that_are_taken_from_connected_clients(client_of, administrator, topic):
    administrator.grant("loser", "produce", "consume")
    administrator.grant("keeper", "produce", "consume")
    loser, keeper = client_of("loser", **HASTY), client_of("keeper")
    lost = loser.create_producer(topic, send_timeout_millis=2_000)
    loser.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    kept = keeper.create_producer(topic)
    consumer = keeper.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    lost.send(b"still allowed")
    assert tuple(map(len, administrator.attached(topic))) == (2, 2)

    administrator.revoke("loser")
    taken_at = time.monotonic()
    while tuple(map(len, administrator.attached(topic))) != (1, 1):
        assert time.monotonic() < taken_at + 1, "within a second"
    with pytest.raises(pulsar.PulsarException):
        lost.send(b"too late")
    kept.send(b"undisturbed")
    while consumer.receive(RECEIVE_MS).data() != b"undisturbed":
        pass  # what came before

    administrator.grant("loser", "produce")
    loser.create_producer(topic).send(b"allowed again")
    assert consumer.receive(RECEIVE_MS).data() == b"allowed again"


def test_a_token_that_expires_is_refreshed(connect, server, administrator, topic):
    administrator.grant("alice", "produce", "consume")
    given = []

    def fresh():
        given.append(time.time())
        return token("alice", seconds=2)

    client = connect(server.pulsar_url, authentication=pulsar.AuthenticationToken(fresh))
    producer = client.create_producer(topic)
    before = administrator.attached(topic)[0][0]
    begin = time.time()
    while len(given) < 3:
        producer.send(b"on and on")
        assert time.time() < begin + DEADLINE_SECONDS
    assert time.time() > begin + 2, "the first token has expired"
    after = administrator.attached(topic)[0][0]
    assert (before["address"], before["connectedSince"]) == (
        after["address"],
        after["connectedSince"],
    ), "the connection is the same"


def test_who_cannot_refresh_is_disconnected(connect, server, administrator, topic):
    administrator.grant("alice", "produce", "consume")
    fixed = pulsar.AuthenticationToken(token("alice", seconds=1))
    client = connect(server.pulsar_url, authentication=fixed, **HASTY)
    producer = client.create_producer(topic, send_timeout_millis=1_000)
    with pytest.raises(pulsar.PulsarException):
        _send_for(producer, DEADLINE_SECONDS)
    assert administrator.attached(topic)[0] == []


def _send_for(producer, seconds):
    end = time.time() + seconds
    while time.time() < end:
        producer.send(b"as long as I may")
