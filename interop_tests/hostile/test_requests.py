"""Floods of Pulsar requests: what is asked for and not given yet stays within the memory budget,
and those who behave notice little.

Peers here ask and ask, and read the answers or do not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest

import magnetar
from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.flood import WAIT_SECONDS_MAX, Ask, Flood
from interop_tests.hostile.test_memory import BUDGET, Highest
from interop_tests.raw import Raw
from magnetar.wire.pulsar.tests import peer

TOPIC = "persistent://public/default"
FEW, MANY = 20, 300
"""Peers."""
ATTACHED_BYTES = 16 * 1024
"""What a consumer and its subscription take, with names of a kilobyte."""


@pytest.fixture
def server():
    with magnetar.standalone() as server:
        yield server


def fifty(ask: Callable[[int, str], bytes]) -> Ask:
    """Requests in one go, each with its own id and another name of a kilobyte."""

    def some(number: int, turn: int) -> bytes:
        if not turn:
            return peer.connect()
        ids = range(50 * turn + 1, 50 * turn + 51)
        return b"".join(ask(each, f"{number}-{each}-" + "n" * 1_000) for each in ids)

    return some


def greeted(requested: bytes) -> Ask:
    """The same again and again, once it has said who it is."""
    return lambda _number, turn: requested if turn else peer.connect()


def test_subscribing_without_end(server):
    @fifty
    def ask(number, name):
        return peer.subscribe(number, number, f"{TOPIC}/s", name)

    came = Flood(server, server.pulsar_url, FEW, ask)
    assert came.grown < BUDGET / 2 + came.answers * ATTACHED_BYTES, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)


def test_lookups_that_are_not_read(server):
    requested = b"".join(peer.lookup(number, f"{TOPIC}/looked-up") for number in range(3_000))
    came = Flood(server, server.pulsar_url, MANY, greeted(requested), reads=False)
    assert came.grown < BUDGET / 2, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)


def test_lists_of_topics_that_are_not_read(server):
    url = f"{server.http_url}/admin/v2/persistent/public/default/{'t' * 150}/partitions"
    assert httpx.put(url, json=2_000, timeout=60).status_code == 204
    requested = b"".join(
        peer.topics_of_namespace(n, "public/default", mode=2) for n in range(2_000)
    )
    came = Flood(server, server.pulsar_url, MANY, greeted(requested), reads=False)
    assert came.grown < BUDGET, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)


def test_watchers_that_are_not_read(server):
    """A topic of two thousand partitions comes, and ten thousand watchers are told."""
    highest = Highest(server)
    with ExitStack() as stack:
        for _ in range(10):
            one = stack.enter_context(Raw(server, receive_bytes=4096)).introduce()
            for begin in range(0, 1_000, 100):
                ids = range(begin, begin + 100)
                one.say(b"".join(peer.watch_topics(n, n, "public/default", ".*") for n in ids))
                assert {one.receive().kind for _ in ids} == {"WATCH_TOPIC_LIST_SUCCESS"}
        highest.look()
        url = f"{server.http_url}/admin/v2/persistent/public/default/{'t' * 50}/partitions"
        assert httpx.put(url, json=2_000, timeout=60).status_code == 204
        highest.look_for(3.0)
    assert highest.grown < BUDGET / 2, f"{highest.grown / MIB:.0f} MiB"
