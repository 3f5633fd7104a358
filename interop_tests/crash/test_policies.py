"""Policies and TLS over a crash: what was decided still holds, and what was at work goes on."""

import httpx
import pytest

from interop_tests.keys import Authority
from interop_tests.pulsar.python.stock import numbered, publish, readable, receive, refused
from interop_tests.waiting import until
from magnetar import standalone

pytestmark = [pytest.mark.slow]

RECEIVE_MS = 20_000
OFTEN = {"housekeeping_interval_seconds": 0.05}
SMALL_LEDGERS = {"max_entries": 10, "min_rollover_minutes": 0}


@pytest.fixture(params=["killed", "stopped"])
def again(request):
    """Ends a server the one way or the other, and starts it again."""

    def end_and_start(server):
        if request.param == "killed":
            server.kill()
        else:
            server.stop()
        server.start()

    return end_and_start


def decide(server, policy, value, **query):
    url = f"{server.http_url}/admin/v2/namespaces/public/default/{policy}"
    assert httpx.post(url, json=value, params=query).status_code == 204


def backlog(server, topic):
    """Messages that wait in the subscription `s`."""
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/stats"
    return httpx.get(url).json()["subscriptions"]["s"]["msgBacklog"]


def test_time_to_live(connect, topic, again):
    """Set by REST before, it acts after, on messages from before."""
    with standalone(broker=OFTEN) as server:
        client = connect(server.pulsar_url)
        consumer = client.subscribe(topic, "s", receiver_queue_size=1)
        producer = client.create_producer(topic, batching_enabled=False)
        consumer.close()
        publish(producer, numbered(10))
        decide(server, "messageTTL", 1)
        again(server)
        producer.send(b"and one more")
        until(lambda: backlog(server, topic) == 0)


def test_retention(connect, topic, again):
    with standalone(broker=OFTEN, ledgers=SMALL_LEDGERS) as server:
        decide(server, "retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
        client = connect(server.pulsar_url)
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(topic, batching_enabled=False)
        for body in numbered(45):
            producer.send(body)
        for message in receive(consumer, 45):
            consumer.acknowledge(message)
        again(server)
        assert readable(client, topic) == numbered(45)
        decide(server, "retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
        # what was acknowledged without receipt may have come again
        consumer.close()
        consumer = client.subscribe(topic, "s")
        producer.send(b"last")
        while (message := consumer.receive(RECEIVE_MS)).data() != b"last":
            consumer.acknowledge(message)
        consumer.acknowledge(message)
        until(lambda: len(readable(client, topic)) <= 10)


def test_backlog_quota(connect, topic, again):
    """Who was refused is refused, until consumers have caught up."""
    with standalone(broker=OFTEN) as server:
        quota = {"limitSize": 100_000, "policy": "producer_exception"}
        decide(server, "backlogQuota", quota, backlogQuotaType="destination_storage")
        client = connect(server.pulsar_url)
        consumer = client.subscribe(topic, "s")
        publish(client.create_producer(topic, batching_enabled=False), [bytes(10_000)] * 20)
        until(lambda: refused(client, topic))
        again(server)
        until(lambda: refused(client, topic))
        for message in receive(consumer, 20):
            consumer.acknowledge(message)
        until(lambda: not refused(client, topic))


# -- as the Java client sees it ------------------------------------------------------------------


@pytest.mark.java
def test_time_to_live_in_java(java, topic, again):
    with standalone(broker=OFTEN) as server:
        playing = java.start("read.expired", server.pulsar_url, topic)
        playing.wait_for("published")
        decide(server, "messageTTL", 1)
        again(server)
        until(lambda: backlog(server, topic) == 0)
        playing.tell("expired")
        assert playing.result() == []


@pytest.mark.java
def test_retention_in_java(java, topic, again):
    with standalone(broker=OFTEN, ledgers=SMALL_LEDGERS) as server:
        decide(server, "retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
        playing = java.start("read.retained", server.pulsar_url, topic, midway=True)
        playing.wait_for("midway")
        again(server)
        playing.tell("on")
        assert playing.result() == [body.decode() for body in numbered(20)]


@pytest.mark.java
def test_backlog_quota_in_java(connect, java, topic, again):
    with standalone(broker=OFTEN) as server:
        quota = {"limitSize": 100_000, "policy": "producer_exception"}
        decide(server, "backlogQuota", quota, backlogQuotaType="destination_storage")
        client = connect(server.pulsar_url)
        consumer = client.subscribe(topic, "s")
        publish(client.create_producer(topic, batching_enabled=False), [bytes(10_000)] * 20)

        def received():
            """It tries again until its patience, in seconds, is over."""
            return java.play("access.create", server.pulsar_url, topic, patience=2)

        until(lambda: received() == "ProducerBlockedQuotaExceededException")
        again(server)
        until(lambda: received() == "ProducerBlockedQuotaExceededException")
        for message in receive(consumer, 20):
            consumer.acknowledge(message)
        until(lambda: received() == "none")


@pytest.mark.java
def test_tls(connect, java, topic, topics, tmp_path, again):
    """Both clients come back through the closed door."""
    authority = Authority(tmp_path, "ours")
    certificate, key = authority.issue("server")
    with standalone(tls_certificate=certificate, tls_key=key) as server:
        client = connect(
            server.pulsar_tls_url,
            tls_trust_certs_file_path=authority.certificate,
            tls_validate_hostname=True,
        )
        consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
        producer.send(b"before")
        url, trust = server.pulsar_tls_url, authority.certificate
        playing = java.start("again.sync", url, topics(), trust=trust)
        playing.wait_for("midway")
        again(server)
        playing.tell("on")
        producer.send(b"after")
        found = set()
        while found != {b"before", b"after"}:
            found.add(consumer.receive(RECEIVE_MS).data())
        assert playing.result() == [str(number) for number in range(20)]
