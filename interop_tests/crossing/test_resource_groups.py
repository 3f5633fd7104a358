"""Resource groups: topics of one namespace share a rate, whichever protocol their producers speak.

Rates are so low that what they hold back would take minutes, and what they do not a moment: no
test depends on how quick the machine is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pulsar
import pytest
from confluent_kafka import Producer

from magnetar import Standalone, standalone

from .device import Device

GROUP = "/admin/v2/resourcegroups/g"
LIMITED, FREE = "public/default", "public/free"
SECONDS = 60


class Desk:
    """A server with a group, and clients of it."""

    def __init__(self, server: Standalone) -> None:
        self.server = server
        self.connect()

    def connect(self) -> None:
        quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self.client = pulsar.Client(self.server.pulsar_url, logger=quiet)
        self.admin = httpx.Client(base_url=self.server.http_url, timeout=SECONDS)

    def close(self) -> None:
        self.client.close()
        self.admin.close()

    def ask(self, method: str, path: str, body: Any = None) -> None:
        answer = self.admin.request(method, path, **({} if body is None else {"json": body}))
        assert answer.status_code == 204, (path, answer.text)

    def rates(self, **rates: int) -> None:
        none = dict.fromkeys(
            (
                *("publishRateInMsgs", "publishRateInBytes"),
                *("dispatchRateInMsgs", "dispatchRateInBytes"),
            ),
            -1,
        )
        self.ask("PUT", GROUP, {**none, **rates})

    def join(self) -> None:
        self.ask("POST", f"/admin/v2/namespaces/{LIMITED}/resourcegroup/g")

    def leave(self) -> None:
        self.ask("DELETE", f"/admin/v2/namespaces/{LIMITED}/resourcegroup")

    def pulsars(self, topic: str) -> Callable[[], object]:
        """Sends one message and waits until it is stored."""
        producer = self.client.create_producer(topic, send_timeout_millis=0)
        return lambda: producer.send(b"x" * 100)

    def kafkas(self, topic: str) -> Callable[[], object]:
        """Likewise."""
        producer = Producer({"bootstrap.servers": self.server.bootstrap_servers, "linger.ms": 0})

        def send() -> None:
            producer.produce(topic, b"x" * 100)
            assert producer.flush(SECONDS) == 0

        return send


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with standalone(data_dir=tmp_path / "data") as server, closing(Desk(server)) as desk:
        desk.ask("PUT", f"/admin/v2/namespaces/{FREE}")
        desk.rates()
        yield desk


def seconds(calls: int, *senders: Callable[[], object]) -> float:
    """How long so many calls of each take, one after the other."""
    began = time.monotonic()
    for _ in range(calls):
        for send in senders:
            send()
    return time.monotonic() - began


def test_producers_of_all_protocols_share_the_rate(desk: Desk) -> None:
    desk.rates(publishRateInMsgs=1)
    with closing(Device(desk.server)) as device:
        limited = [
            desk.pulsars(f"persistent://{LIMITED}/a"),
            desk.pulsars(f"non-persistent://{LIMITED}/b"),
            desk.kafkas("c"),
            lambda: device.publish("d/e", b"x"),
        ]
        free = [desk.pulsars(f"{FREE}/a"), desk.kafkas(f"{FREE}/c")]
        for send in (*limited, *free):
            send()
        desk.join()
        # each sends its first message at once, and is then not read until it is its turn
        assert seconds(2, *limited) >= 3
        assert seconds(100, *free) < 100, "they would take more than three minutes"
        desk.rates(publishRateInMsgs=100_000)
        assert seconds(25, *limited) < 60
        desk.rates(publishRateInMsgs=1)
        assert seconds(2, *limited) >= 3
        desk.leave()
        assert seconds(25, *limited) < 60


def test_a_large_debt_ends_with_the_group(desk: Desk) -> None:
    """At one byte a second the first message is paid for in more than a minute."""
    send = desk.pulsars(f"{LIMITED}/a")
    desk.rates(publishRateInBytes=1)
    desk.join()
    send()
    desk.leave()
    desk.ask("DELETE", GROUP)
    assert seconds(5, send) < 60


def test_subscriptions_share_the_dispatch_rate(desk: Desk) -> None:
    consumers = [
        desk.client.subscribe(f"{LIMITED}/{name}", "s", pulsar.ConsumerType.Shared) for name in "ab"
    ]
    free = desk.client.subscribe(f"{FREE}/a", "s")
    desk.rates(dispatchRateInMsgs=2)
    desk.join()
    seconds(6, *(desk.pulsars(topic) for topic in (f"{LIMITED}/a", f"{LIMITED}/b", f"{FREE}/a")))
    began = time.monotonic()
    for _ in range(6):
        free.receive(SECONDS * 1000)
    for consumer in consumers:
        consumer.receive(SECONDS * 1000)
    for _ in range(3):
        for consumer in consumers:
            consumer.receive(SECONDS * 1000)
    assert time.monotonic() - began >= 2, "eight messages, four of which at most came at once"
    seconds(100, *(desk.pulsars(f"{LIMITED}/{name}") for name in "ab"))
    began = time.monotonic()
    desk.rates()
    for _ in range(102):
        for consumer in consumers:
            consumer.receive(SECONDS * 1000)
    assert time.monotonic() - began < 60


def test_a_restart_keeps_groups(desk: Desk) -> None:
    desk.rates(publishRateInMsgs=1)
    desk.join()
    desk.close()
    desk.server.stop()
    desk.server.start()
    desk.connect()
    assert desk.admin.get(GROUP).json()["publishRateInMsgs"] == 1
    send = desk.pulsars(f"{LIMITED}/a")
    assert seconds(4, send) >= 1
    assert seconds(50, desk.pulsars(f"{FREE}/a")) < 49
