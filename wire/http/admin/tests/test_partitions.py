"""Partitioned topics, by the bodies that tools send; their life is told by `test_topics.py`."""

from typing import Any

import pytest

from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/persistent/public/default/p"


@pytest.mark.parametrize(
    "body", [3, "3", {"partitions": 3}, {"partitions": 3, "properties": None, "deleted": False}]
)
async def test_a_number_comes_in_many_forms(visitor: Visitor, body: Any) -> None:
    await visitor.does("PUT", f"{HERE}/partitions", body)
    assert await visitor.get(f"{HERE}/partitions") == {"partitions": 3, "deleted": False}


@pytest.mark.parametrize("body", [None, {}, "some", [1], 0, -1, 1.5, {"partitions": 1 << 40}])
async def test_what_is_no_number_of_partitions(visitor: Visitor, body: Any) -> None:
    await visitor.fails(400, "PUT", f"{HERE}/partitions", body)
    await visitor.fails(404, "GET", f"{HERE}/partitions")


async def test_bad_properties_leave_no_topic_behind(visitor: Visitor) -> None:
    body = {"partitions": 2, "properties": {"a": 1}}
    await visitor.fails(400, "PUT", f"{HERE}/partitions", body)
    await visitor.fails(404, "GET", f"{HERE}/partitions")


async def test_growth_makes_no_topic_a_shadow(visitor: Visitor) -> None:
    """Nor another one's: whoever may grow a topic need not be allowed to read the source."""
    here, shown = "/admin/v2/persistent/public/default", {"PULSAR.SHADOW_SOURCE": "source"}
    for name in ("source", "other", "mine"):
        await visitor.does("PUT", f"{here}/{name}/partitions", 1)
    await visitor.does("PUT", f"{here}/shadow/partitions", {"partitions": 1, "properties": shown})
    grown = {"partitions": 2, "properties": shown}
    await visitor.fails(412, "POST", f"{here}/mine/partitions", grown)
    assert (await visitor.get(f"{here}/mine/partitions"))["partitions"] == 1
    await visitor.does("POST", f"{here}/other/partitions", 2)
    moved = {"partitions": 2, "properties": {"PULSAR.SHADOW_SOURCE": "other"}}
    await visitor.fails(412, "POST", f"{here}/shadow/partitions", moved)
    await visitor.does("POST", f"{here}/source/partitions", 2)
    await visitor.does("POST", f"{here}/shadow/partitions", {**grown, "properties": shown})
    assert await visitor.get(f"{here}/shadow/properties") == shown
    more = {"partitions": 3, "properties": {"owner": "sales"}}
    await visitor.does("POST", f"{here}/mine/partitions", more)
    assert await visitor.get(f"{here}/mine/properties") == {"owner": "sales"}
