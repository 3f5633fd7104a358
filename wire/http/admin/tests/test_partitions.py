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
