"""The number of messages behind a place, in entries of several messages."""

from __future__ import annotations

import pytest

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.administration.places import place_details
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests.peer import publish

FUNNEL = "persistent://public/default/mqtt"


async def fill(stage: Stage) -> list[tuple[int, int]]:
    """Twelve entries of two messages; returns their positions."""
    writer = await stage.connected("w")
    await writer.says(publish("t", b"first"))
    log = await stage.services.logs.open_for("t")
    positions = []
    for _ in range(12):
        positions.append(log.feed.end)
        await writer.says(publish("t", b"1") + publish("t", b"2"))
    return positions


@pytest.mark.parametrize("cached", [True, False])
async def test_messages_from_a_place_on(cached: bool) -> None:
    stores = Stores()
    async with serving(stores) as stage:
        positions = await fill(stage)
        if not cached:
            await stage.broker.unload((await stage.services.logs.open_for("t")).name)
        backlogs = [
            (await place_details(stage.broker, FUNNEL, position, place)).backlog
            for position in (positions[0], positions[5], positions[-1])
            for place in (0, 1)
        ]
        assert backlogs == [24, 23, 14, 13, 2, 1]
        end = (await stage.services.logs.open_for("t")).feed.end
        assert (await place_details(stage.broker, FUNNEL, end, 0)).backlog == 0


async def test_what_was_trimmed_does_not_count(stage: Stage) -> None:
    positions = await fill(stage)
    topic = (await stage.services.logs.open_for("t")).topic
    assert topic is not None
    await topic.ledger.trim([positions[0][0]])
    assert (await place_details(stage.broker, FUNNEL, positions[0], 1)).backlog == 6


async def test_a_topic_that_is_not_there(stage: Stage) -> None:
    found = await place_details(stage.broker, "persistent://public/default/gone", (1, 2), 3)
    assert (found.ledger_id, found.entry_id, found.place, found.backlog) == (1, 2, 3, None)
