"""Pulsar's WebSocket API with a real client of WebSockets, beside Apache's client for Python."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pulsar
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

import magnetar
from interop_tests.keys import Authority
from interop_tests.waiting import until

SECONDS = 20
Opens = Callable[..., "Socket"]


class Socket:
    """One WebSocket that speaks JSON."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def say(self, **document: Any) -> None:
        self.connection.send(json.dumps(document))

    def hear(self) -> dict[str, Any]:
        return json.loads(self.connection.recv(timeout=SECONDS))

    def ask(self, **document: Any) -> dict[str, Any]:
        self.say(**document)
        return self.hear()

    def publish(self, payload: bytes, **fields: Any) -> dict[str, Any]:
        return self.ask(payload=base64.b64encode(payload).decode(), **fields)

    def take(self) -> bytes:
        """The next message's payload, acknowledged."""
        message = self.hear()
        self.say(messageId=message["messageId"])
        return base64.b64decode(message["payload"])

    def says_nothing(self) -> bool:
        """Whether nothing came before the answer to a question."""
        return self.ask(type="isEndOfTopic") == {"endOfTopic": False}


@pytest.fixture
def opens(server: magnetar.Standalone) -> Iterator[Opens]:
    """Opens a WebSocket on the server of the whole run."""
    opened: list[ClientConnection] = []

    def open(path: str, **options: Any) -> Socket:
        url = f"{server.http_url.replace('http://', 'ws://')}/ws/v2/{path}"
        opened.append(connect(url, max_size=None, **options))
        return Socket(opened[-1])

    yield open
    for each in opened:
        each.close()


def path(kind: str, topic: str, more: str = "") -> str:
    return f"{kind}/persistent/public/default/{topic}{more}"


def test_both_ways_with_a_client_of_the_binary_protocol(opens, client, topic):
    ours = opens(path("consumer", topic, "/ours"))
    theirs = client.subscribe(topic, "theirs")
    producer = opens(path("producer", topic, "?producerName=web&compressionType=ZSTD"))
    # a number, as in Apache's own example for Python
    receipt = producer.publish(b"web", key="k", properties={"a": "b"}, context=5)
    assert (receipt["result"], receipt["context"]) == ("ok", "5")
    message = theirs.receive(10_000)
    assert (message.data(), message.partition_key(), message.properties()) == (
        b"web",
        "k",
        {"a": "b"},
    )
    assert message.producer_name() == "web"
    assert message.message_id().serialize() == base64.b64decode(receipt["messageId"])
    assert ours.take() == b"web"
    batched = client.create_producer(
        topic, batching_enabled=True, compression_type=pulsar.CompressionType.LZ4
    )
    for n in range(10):
        batched.send_async(b"%d" % n, None)
    batched.flush()
    assert [ours.take() for _ in range(10)] == [b"%d" % n for n in range(10)]


def test_permits_hold_messages_back(opens, topic, server):
    consumer = opens(path("consumer", topic, "/s?receiverQueueSize=2"))
    pulling = opens(path("consumer", topic, "/pulling?pullMode=true"))
    producer = opens(path("producer", topic))
    for n in range(4):
        producer.publish(b"%d" % n)
    first, second = consumer.hear(), consumer.hear()
    assert consumer.says_nothing()
    stats = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/stats"
    (seen,) = httpx.get(stats).json()["subscriptions"]["s"]["consumers"]
    assert seen["availablePermits"] == 0
    assert seen["clientVersion"] == "Pulsar-WebSocket"
    consumer.say(messageId=first["messageId"])
    assert consumer.take() == b"2"
    assert consumer.take() == b"3"
    consumer.say(messageId=second["messageId"])
    assert pulling.says_nothing()
    pulling.say(type="permit", permitMessages=1)
    assert pulling.take() == b"0"
    assert pulling.says_nothing()


def test_statistics_and_an_analysis(opens, topic, client, server):
    consumer = opens(path("consumer", topic, "/s"))
    producer = opens(path("producer", topic))
    producer.publish(b"one")
    consumer.hear()
    batched = client.create_producer(topic, batching_enabled=True)
    for n in range(3):
        batched.send_async(b"%d" % n, None)
    batched.flush()
    admin = f"{server.http_url}/admin/v2"
    name = f"persistent/public/default/{topic}"
    every = httpx.get(f"{admin}/proxy-stats/stats").json()
    found = httpx.get(f"{admin}/proxy-stats/{name}/stats").json()
    assert every[f"persistent://public/default/{topic}"] == found
    assert [each["numberOfMsgPublished"] for each in found["producerStats"]] == [1]
    assert found["consumerStats"][0]["subscriptionName"] == "s"
    analysis = httpx.post(f"{admin}/{name}/subscription/s/analyzeBacklog").json()
    assert (analysis["entries"], analysis["messages"], analysis["aborted"]) == (2, 4, False)


def test_what_is_not_acknowledged_comes_again(opens, topic):
    more = "/s?subscriptionType=Shared&negativeAckRedeliveryDelay=100&maxRedeliverCount=1"
    consumer = opens(path("consumer", topic, more))
    opens(path("producer", topic)).publish(b"bad")
    message = consumer.hear()
    consumer.say(type="negativeAcknowledge", messageId=message["messageId"])
    again = consumer.hear()
    assert again["messageId"] == message["messageId"]
    assert (message["redeliveryCount"], again["redeliveryCount"]) == (0, 1)
    consumer.say(type="negativeAcknowledge", messageId=again["messageId"])
    dead = opens(path("reader", f"{topic}-s-DLQ", "?messageId=earliest"))
    assert dead.take() == b"bad"


def test_a_reader_and_the_end_of_a_topic(opens, topic, server):
    producer = opens(path("producer", topic))
    places = [producer.publish(b"%d" % n)["messageId"] for n in range(3)]
    everything = opens(path("reader", topic, "?messageId=earliest"))
    assert [everything.take() for _ in range(3)] == [b"0", b"1", b"2"]
    place = places[0].replace("+", "%2B").replace("=", "%3D")
    assert opens(path("reader", topic, f"?messageId={place}")).take() == b"1"
    newest = opens(path("reader", topic))
    assert newest.says_nothing()
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/terminate"
    assert httpx.post(url).status_code == 200
    assert newest.ask(type="isEndOfTopic") == {"endOfTopic": True}
    with pytest.raises(ConnectionClosed):
        producer.hear()


def test_partitions(opens, topic, server):
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    assert httpx.put(url, json=3).status_code == 204
    consumer = opens(path("consumer", topic, "/s"))
    producer = opens(path("producer", topic, "?messageRoutingMode=RoundRobinPartition"))
    for n in range(9):
        assert producer.publish(b"%d" % n)["result"] == "ok"
    assert sorted(consumer.take() for _ in range(9)) == [b"%d" % n for n in range(9)]


def test_several_topics_and_a_pattern(client, topic, server):
    url = f"{server.http_url.replace('http://', 'ws://')}/ws/v3/consumer"
    with (
        connect(f"{url}/s?topics={topic}-0,{topic}-1") as listed,
        connect(
            f"{url}/p?topicsPattern={topic}-.*&subscriptionInitialPosition=Earliest"
        ) as matched,
    ):
        for number in range(3):
            client.create_producer(f"{topic}-{number}").send(b"%d" % number)
        assert sorted(Socket(listed).take() for _ in range(2)) == [b"0", b"1"]
        assert sorted(Socket(matched).take() for _ in range(3)) == [b"0", b"1", b"2"]


def test_unsubscribe_and_unload(opens, topic, server):
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}"
    consumer = opens(path("consumer", topic, "/s"))
    producer = opens(path("producer", topic))
    assert httpx.put(f"{url}/unload").status_code == 204
    while producer.publish(b"after")["result"] != "ok":
        pass
    assert consumer.take() == b"after"
    consumer.say(type="unsubscribe")
    assert consumer.says_nothing()
    until(lambda: httpx.get(f"{url}/subscriptions").json() == [])  # nobody answers


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("producer/persistent/nobody/nowhere/t", 404),
        ("producer/persistent/public/default/t?hashingScheme=x", 400),
        ("consumer/persistent/public/default/t", 400),
        ("nothing/persistent/public/default/t", 404),
    ],
)
def test_what_is_refused(opens, more, status):
    with pytest.raises(InvalidStatus) as refused:
        opens(more)
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["reason"]


def test_a_foreign_page_is_refused(opens, topic, server):
    with pytest.raises(InvalidStatus) as refused:
        opens(path("producer", topic), origin="http://evil.example")
    assert refused.value.response.status_code == 403
    assert opens(path("producer", topic), origin=server.http_url).publish(b"x")["result"] == "ok"


def test_other_requests_are_served_beside_it(server):
    assert httpx.get(f"{server.http_url}/ws/v2/producer/x").status_code == 426
    with httpx.Client(base_url=server.http_url) as http:
        assert http.get("/admin/v2/clusters").status_code == 200
        assert http.get("/ws/v2/producer/x").status_code in (404, 426)


def test_tls(topic, tmp_path):
    authority = Authority(tmp_path, "ours")
    certificate, key = authority.issue("server")
    trust = ssl.create_default_context(cafile=authority.certificate)
    with magnetar.standalone(tls_certificate=certificate, tls_key=key) as server:
        url = f"{server.https_url.replace('https://', 'wss://')}/ws/v2/"
        with (
            connect(url + path("consumer", topic, "/s"), ssl=trust, max_size=None) as consumer,
            connect(url + path("producer", topic), ssl=trust, max_size=None) as producer,
        ):
            for size in (0, 1, 100_000, 2_000_000):
                assert Socket(producer).publish(b"x" * size)["result"] == "ok"
                assert len(Socket(consumer).take()) == size
        assert httpx.get(f"{server.https_url}/healthz", verify=trust).text == "ok"
