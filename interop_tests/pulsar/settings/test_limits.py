"""What one process takes upon itself, and what stock clients hear beyond it."""

import time

import httpx
import pulsar
import pytest
from pulsar import ConsumerType

from magnetar import standalone
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

REASON = "the server has its maximum of 1 connections"


def test_a_connection_too_many_hears_why(connect, raw, topic):
    """The C++ family takes any answer but a welcome for a broken connection, tries again until
    its operation times out, and then says so at once: never a hanging client.
    """
    with standalone(limits={"connections": 1}) as server:
        with raw(server) as first:
            first.introduce()
            with raw(server) as second:
                received = second.ask(peer.connect())
                assert (received.kind, received.body.error) == ("ERROR", pb.NotAllowedError)
                assert received.body.message == REASON
                assert second.until_closed() == []
            refused = connect(server.pulsar_url, operation_timeout_seconds=1)
            with pytest.raises((pulsar.Timeout, pulsar.ConnectError)):
                refused.create_producer(topic)
            assert first.ask(peer.ping()).kind == "PONG"
        welcome = connect(server.pulsar_url)
        welcome.create_producer(topic).send(b"there is room again")


def test_publish_and_dispatch_rates_of_a_namespace(connect, topics):
    """Set by REST as tools do; nothing is refused, everything comes, and takes its time."""
    with standalone() as server:
        client = connect(server.pulsar_url)
        namespace = f"{server.http_url}/admin/v2/namespaces/public/default"
        rate = {"publishThrottlingRateInMsg": 100, "publishThrottlingRateInByte": -1}
        httpx.post(f"{namespace}/publishRate", json=rate).raise_for_status()
        producer = client.create_producer(topics(), batching_enabled=False)
        started = time.monotonic()
        for _ in range(4):
            for _ in range(50):
                producer.send_async(b"x", None)
            producer.flush()
        producer.send(b"the last")
        assert time.monotonic() - started > 0.9, "200 messages at 100 a second, 100 of them at once"
        httpx.delete(f"{namespace}/publishRate").raise_for_status()

        rate = {"dispatchThrottlingRateInMsg": 50, "ratePeriodInSecond": 1}
        httpx.post(f"{namespace}/subscriptionDispatchRate", json=rate).raise_for_status()
        topic = topics()
        consumer = client.subscribe(topic, "s", ConsumerType.Shared)
        quick = client.create_producer(topic, batching_enabled=False)
        started = time.monotonic()
        for number in range(100):
            quick.send_async(b"%d" % number, None)
        quick.flush()
        assert time.monotonic() - started < 5
        found = [consumer.receive(10_000).data() for _ in range(100)]
        assert found == [b"%d" % number for number in range(100)]
        assert time.monotonic() - started > 0.9
