"""Shared subscriptions as administrators list them."""

from __future__ import annotations

from magnetar.core.ports.client_administration import (
    SharedSubscriptionDetails,
    SharedSubscriptionQuery,
)
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.administration.shared_subscriptions import (
    MqttSharedSubscriptionAdministration,
)
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests.peer import V5, publish

LASTS = b"\x11\xff\xff\xff\xff"


async def listed(stage: Stage, after: str = "") -> list[SharedSubscriptionDetails]:
    administration = MqttSharedSubscriptionAdministration(stage.services)
    page = await administration.shared_subscriptions(SharedSubscriptionQuery(after))
    return list(page.items)


async def test_members_and_backlog() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        first = await stage.subscribed(
            "1", ("$share/g/t", 1), version=V5, clean=False, properties=LASTS
        )
        second = await stage.subscribed("2", ("$share/g/t", 1), ("$share/h/u", 1), version=V5)
        writer = await stage.connected("w")
        await writer.says(*(publish("t", b"x", qos=1, number=number) for number in (1, 2, 3)))
        group, other = await listed(stage)
        assert (group.name, group.sessions, group.connected) == ("$share/g/t", 2, 2)
        assert [(one.client_id, one.in_flight) for one in group.members] == [("1", 2), ("2", 1)]
        assert {one.address for one in group.members} == {"1.2.3.4:1"}
        assert (group.unacknowledged, [one.backlog for one in group.places]) == (3, [0])
        assert (other.name, other.unacknowledged) == ("$share/h/u", 0)
        assert [one.name for one in await listed(stage, "$share/g/t")] == ["$share/h/u"]
        await second.leaves()
        await first.acknowledges(*await first.receive())
        await first.leaves()
        await writer.says(publish("t", b"x", qos=1, number=4))
        (group,) = await listed(stage)
        assert (group.sessions, group.connected, group.members) == (1, 0, [])
        assert [one.backlog for one in group.places] == [1]
        await stage.services.stop()
    async with serving(stores) as stage:
        (group,) = await listed(stage)
        assert (group.sessions, [one.backlog for one in group.places]) == (1, [1])
