"""The subscription of MQTT's sessions in Pulsar's stats, and what tools may do to it: look."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from magnetar.core.testing.client import attached
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.wire.http.tests.mqtt import Both, both
from magnetar.wire.mqtt.clients.hold import SUBSCRIPTION
from magnetar.wire.mqtt.tests.peer import V5

__all__ = ["both"]

TOPIC = "/admin/v2/persistent/public/default/mqtt"
HELD = f"{TOPIC}/subscription/{SUBSCRIPTION}"
LASTS = b"\x11\xff\xff\xff\xff"


async def stats(both: Both, query: str = "") -> dict[str, Any]:
    await both.services.hold.advance()
    found: dict[str, Any] = (await both.visitor.get(f"{TOPIC}/stats{query}"))["subscriptions"]
    return found


async def test_connected_clients_are_its_consumers(both: Both) -> None:
    client = await both.subscribed("c", ("t", 1), version=V5)
    await both.asleep("s")
    await both.publish(b"1", b"2")
    await client.acknowledges((await client.receive())[0])
    held = (await stats(both))[SUBSCRIPTION]
    assert held["subscriptionProperties"] == {"sessions": "2"}
    assert (held["msgBacklog"], held["unackedMessages"]) == (2, 1)
    (consumer,) = held["consumers"]
    assert (consumer["consumerName"], consumer["address"]) == ("c", "/1.2.3.4:1")
    assert (consumer["clientVersion"], consumer["msgOutCounter"]) == ("MQTT 5.0", 2)
    assert consumer["unackedMessages"] == 1
    held = (await stats(both, "?excludeConsumers=true"))[SUBSCRIPTION]
    assert held["consumers"] == []


async def test_a_consumer_has_the_fields_of_any_other(both: Both) -> None:
    """Tools read all of them."""
    await both.subscribed("c", ("t", 1))
    topic = await both.visitor.topic("public/default/mqtt")
    await attached(topic, SubscriptionType.SHARED, subscription="p")
    found = await stats(both)
    (client,), (usual,) = found[SUBSCRIPTION]["consumers"], found["p"]["consumers"]
    assert {name: type(value) for name, value in client.items()} == {
        name: type(value) for name, value in usual.items()
    }


async def test_shared_subscriptions_have_their_own_backlog(both: Both) -> None:
    worker = await both.subscribed("c", ("$share/g/t", 1), version=V5, clean=False,
                                   properties=LASTS)  # fmt: skip
    await both.subscribed("passing", ("$share/h/t", 1), version=V5)
    await both.publish(b"1", b"2", b"3")
    await worker.acknowledges((await worker.receive())[0])
    found = await stats(both)
    assert "$share/h/t" not in found, "it ends with its last connection"
    shown = found["$share/g/t"]
    assert (shown["type"], shown["msgBacklog"], shown["unackedMessages"]) == ("Shared", 2, 2)
    assert [one["consumerName"] for one in shown["consumers"]] == ["c"]
    await worker.leaves()
    await both.publish(b"4")
    shown = (await stats(both))["$share/g/t"]
    assert (shown["msgBacklog"], shown["consumers"]) == (3, [])
    assert shown.keys() == found[SUBSCRIPTION].keys()


async def test_a_subscription_of_pulsars_is_shown_as_ever(both: Both) -> None:
    await both.asleep("s")
    await both.visitor.does("PUT", f"{TOPIC}/subscription/p")
    found = (await stats(both))["p"]
    assert (found["subscriptionProperties"], found["consumers"]) == ({}, [])


REFUSED = [
    ("POST", f"{HELD}/skip/1"),
    ("POST", f"{HELD}/skip_all"),
    ("POST", f"{HELD}/expireMessages/0"),
    ("POST", f"{HELD}/expireMessages"),
    ("POST", f"{HELD}/resetcursor"),
    ("POST", f"{HELD}/resetcursor/0"),
    ("DELETE", HELD),
    ("DELETE", f"{HELD}?force=true"),
    ("PUT", f"{HELD}/properties"),
    ("DELETE", f"{TOPIC}/truncate"),
    ("POST", f"/admin/v2/namespaces/public/default/clearBacklog/{SUBSCRIPTION}"),
    ("POST", f"/admin/v2/namespaces/public/default/unsubscribe/{SUBSCRIPTION}"),
    ("POST", f"{TOPIC}/subscription/%24share%2Fg%2Ft/skip_all"),
]


@pytest.mark.parametrize(("method", "path"), REFUSED)
async def test_nobody_else_moves_it(both: Both, method: str, path: str) -> None:
    """A session would lose messages, and nobody would say so."""
    await both.asleep("s")
    await both.publish(b"1", b"2")
    body = {"ledgerId": 0, "entryId": 0} if path.endswith(("resetcursor", "expireMessages")) else {}
    reason = await both.visitor.fails(412, method, path, body)
    assert "is held for the sessions of MQTT clients" in reason
    assert (await stats(both))[SUBSCRIPTION]["msgBacklog"] == 2
    _, (_, *got) = await both.connects("s", clean=False)
    assert [one.payload for one in got] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{TOPIC}/all_subscription/expireMessages/0"),
        ("POST", "/admin/v2/namespaces/public/default/clearBacklog"),
    ],
)
async def test_what_concerns_all_subscriptions_leaves_it_out(
    both: Both, method: str, path: str
) -> None:
    await both.asleep("s")
    await both.visitor.does("PUT", f"{TOPIC}/subscription/p")
    await both.publish(b"1", b"2")
    published_ms = both.broker.clock.wall_ms()
    while both.broker.clock.wall_ms() == published_ms:
        await trio.lowlevel.checkpoint()
    await both.visitor.does(method, path)
    found = await stats(both)
    assert (found["p"]["msgBacklog"], found[SUBSCRIPTION]["msgBacklog"]) == (0, 2)


async def test_it_cannot_be_created_before_its_holder_does(both: Both) -> None:
    await both.publish(b"1")
    await both.visitor.fails(412, "PUT", HELD)
    await both.visitor.fails(412, "GET", f"{HELD}/position/1")
    assert SUBSCRIPTION not in await stats(both)


async def test_it_can_be_peeked_into(both: Both) -> None:
    await both.asleep("s")
    await both.publish(b"1")
    reason = await both.visitor.fails(405, "GET", f"{HELD}/position/1")
    assert "not shown by this server" in reason, "a message is found, and no reader of entries set"


async def test_a_topic_that_all_sessions_have_read_is_truncated(both: Both) -> None:
    client = await both.subscribed("c", ("t", 1), clean=False)
    await both.publish(b"1", b"2")
    await client.acknowledges(*await client.receive())
    await both.visitor.does("DELETE", f"{TOPIC}/truncate")
    assert (await stats(both))[SUBSCRIPTION]["msgBacklog"] == 0
