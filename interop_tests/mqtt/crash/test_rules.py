"""Mapping rules change under load, and across kill -9: no session misses a message."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import magnetar
from magnetar.wire.mqtt.tests.peer import acknowledge, publish, subscribe

from .device import Device, crash

SECONDS = 30.0
RULES = "/admin/v2/mqtt/public/default/rules"
TOPICS = 7
TARGETS = ("first", "{each}", "second", "first", "third")


@pytest.fixture
def server() -> Iterator[Any]:
    with magnetar.standalone() as started:
        yield started


class Publisher:
    """Publishes numbers to several topics, one in flight, and goes on after a crash."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._stopped = False
        self.acknowledged = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped:
            with contextlib.suppress(OSError), Device(self._server, "w") as device:
                while not self._stopped:
                    number = self.acknowledged
                    topic = f"t/{number % TOPICS}"
                    device.say(publish(topic, b"%d" % number, qos=1, number=number % 60_000 + 1))
                    assert device.take().kind == "PUBACK"
                    with self._changed:
                        self.acknowledged += 1
                        self._changed.notify_all()

    def wait_for_more(self, count: int) -> None:
        """Until so many more are acknowledged."""
        with self._changed:
            wanted = self.acknowledged + count
            assert self._changed.wait_for(lambda: self.acknowledged >= wanted, SECONDS)

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(SECONDS)


def set_rules(server: Any, target: str) -> httpx.Response:
    rules = [{"filter": "t/#", "topic": target}]
    return httpx.put(f"{server.http_url}{RULES}", json={"rules": rules}, timeout=SECONDS)


def subscribed(server: Any, client_id: str) -> Device:
    device = Device(server, client_id)
    device.say(subscribe(("t/#", 1)))
    assert device.take().kind == "SUBACK"
    return device


def everything(server: Any, client_id: str, count: int) -> None:
    """Take messages until all of so many numbers have come."""
    missing = set(range(count))
    with Device(server, client_id) as device:
        assert device.resumed
        while missing:
            packet = device.take()
            if packet.kind == "PUBLISH":
                missing.discard(int(packet.payload))
                device.say(acknowledge("PUBACK", packet.number))


def test_rules_change_under_load(server: Any) -> None:
    subscribed(server, "sleeps").socket.close()
    awake = subscribed(server, "awake")
    publisher = Publisher(server)
    try:
        for target in TARGETS:
            publisher.wait_for_more(20)
            assert set_rules(server, target).status_code == 204
        publisher.wait_for_more(20)
    finally:
        publisher.stop()
    awake.socket.close()
    for name in ("sleeps", "awake"):
        everything(server, name, publisher.acknowledged)


def test_rules_change_and_the_server_is_killed(server: Any) -> None:
    """After a change, and in the middle of one."""
    subscribed(server, "sleeps").socket.close()
    awake = subscribed(server, "awake")
    publisher = Publisher(server)
    try:
        for target in TARGETS:
            publisher.wait_for_more(20)
            change = threading.Thread(target=_try_to_set, args=(server, target))
            change.start()
            if target != "second":
                change.join()
            server.kill()
            change.join()
            server.restart()
        publisher.wait_for_more(20)
    finally:
        publisher.stop()
        awake.socket.close()
    crash(server)
    for name in ("sleeps", "awake"):
        everything(server, name, publisher.acknowledged)


def _try_to_set(server: Any, target: str) -> None:
    with contextlib.suppress(httpx.HTTPError):
        set_rules(server, target)


def test_rules_are_there_after_a_restart(server: Any) -> None:
    assert set_rules(server, "orders").status_code == 204
    shown = httpx.get(f"{server.http_url}{RULES}").json()
    assert (shown["configured"], shown["version"]) == (False, 1)
    crash(server)
    assert httpx.get(f"{server.http_url}{RULES}").json() == shown
