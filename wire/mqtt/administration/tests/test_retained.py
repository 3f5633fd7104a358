"""Retained messages as administrators list, read and delete them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.errors import Invalid, NotFound
from magnetar.core.ports.client_administration import RetainedQuery
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.administration.retained import MqttRetainedAdministration
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests.peer import V5, publish, subscribe, text

PROPERTIES = (
    b"\x01\x01" + b"\x02\0\0\0\x3c" + b"\x03" + text("application/json") + b"\x08" + text("r/1")
    + b"\x09" + text(b"\0\xff") + b"\x26" + text("a") + text("1") + b"\x26" + text("a") + text("2")
)  # fmt: skip


def administration(stage: Stage) -> MqttRetainedAdministration:
    return MqttRetainedAdministration(stage.services)


async def retain(stage: Stage, *topics: str, qos: int = 1, properties: bytes = b"") -> None:
    writer = await stage.connected("w", version=V5)
    for topic in topics:
        payload, number = topic.encode(), 1 if qos else 0
        await writer.says(
            publish(topic, payload, qos=qos, number=number, retain=True, version=V5,
                    properties=properties)
        )  # fmt: skip
    await writer.leaves()


async def listed(stage: Stage, **query: Any) -> list[str]:
    return list((await administration(stage).topics(RetainedQuery(**query))).items)


async def test_the_list(stage: Stage) -> None:
    await retain(stage, "b/1", "a/1", "a/2", "$own/1", "c")
    assert await listed(stage) == ["$own/1", "a/1", "a/2", "b/1", "c"]
    assert await listed(stage, filter="#") == ["a/1", "a/2", "b/1", "c"], "not those with $"
    assert await listed(stage, filter="+/1") == ["a/1", "b/1"]
    page = await administration(stage).topics(RetainedQuery(limit=2))
    assert page.next == "a/1"
    assert await listed(stage, after="a/1") == ["a/2", "b/1", "c"]
    with pytest.raises(Invalid):
        await listed(stage, filter="a/#/b")


@pytest.mark.parametrize("budget", [10_000, 0])
async def test_one_message(budget: int) -> None:
    """Whether it is in memory or not."""
    async with serving(retained_bytes_max=budget) as stage:
        await retain(stage, "a/1", properties=PROPERTIES)
        now_ms = stage.stores.clock.wall_ms()
        found = await administration(stage).message("a/1")
        assert (found.payload, found.qos, found.publisher) == (b"a/1", 1, "w")
        assert (found.published_at, found.expires_at) == (now_ms, now_ms + 60_000)
        assert found.properties == {
            "payloadFormatIndicator": 1,
            "messageExpiryInterval": 60,
            "contentType": "application/json",
            "responseTopic": "r/1",
            "correlationData": b"\0\xff",
            "userProperties": [("a", "1"), ("a", "2")],
        }
        with pytest.raises(NotFound):
            await administration(stage).message("a/2")


@pytest.mark.parametrize("budget", [10_000, 0])
async def test_one_is_deleted_for_good(budget: int) -> None:
    stores = Stores()
    async with serving(stores, retained_bytes_max=budget) as stage:
        await retain(stage, "a/1", "a/2")
        reader = await stage.subscribed("r", ("a/+", 1))
        await reader.acknowledges(*await reader.receive())
        await administration(stage).delete("a/1")
        assert await reader.receive() == [], "no subscriber is sent anything"
        with pytest.raises(NotFound):
            await administration(stage).delete("a/1")
    async with serving(stores, retained_bytes_max=budget) as stage:
        assert await listed(stage) == ["a/2"]
        reader = await stage.connected("r")
        _, *found = await reader.says(subscribe(("a/+", 1)))
        assert [one.topic for one in found] == ["a/2"]


async def test_those_that_a_filter_matches_are_deleted(stage: Stage) -> None:
    await retain(stage, *(f"a/{number}" for number in range(5)), "b")
    administrator = administration(stage)
    assert await administrator.delete_matching(RetainedQuery("a/#", limit=3)) == 3
    assert await administrator.delete_matching(RetainedQuery("a/#", limit=3)) == 2
    assert await administrator.delete_matching(RetainedQuery("a/#", limit=3)) == 0
    assert await listed(stage) == ["b"]
