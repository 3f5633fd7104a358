"""Properties, and what may not be one; how they are kept is told by `test_topics.py`."""

from typing import Any

import pytest

from magnetar.core.kernel.errors import Invalid
from magnetar.wire.http.admin.topic_properties import checked
from magnetar.wire.http.tests.visitor import Visitor


def test_properties_are_texts() -> None:
    assert checked({}) == {}
    assert checked({"a": "1"}) == {"a": "1"}


@pytest.mark.parametrize("body", [{"a": 1}, {"a": {}}, [], "a", {"magnetar.a": "1"}])
def test_nothing_else_is(body: Any) -> None:
    with pytest.raises(Invalid):
        checked(body)


async def test_a_topic_becomes_no_shadow_later(visitor: Visitor) -> None:
    here, shown = "/admin/v2/persistent/public/default", {"PULSAR.SHADOW_SOURCE": "source"}
    for name in ("source", "plain"):
        await visitor.does("PUT", f"{here}/{name}")
    await visitor.does("PUT", f"{here}/shadow", {**shown, "mine": "1"})
    await visitor.fails(412, "PUT", f"{here}/plain/properties", shown)
    assert await visitor.get(f"{here}/plain/properties") == {}
    found = await visitor.get(f"{here}/shadow/properties")
    assert found == {"PULSAR.SHADOW_SOURCE": "persistent://public/default/source", "mine": "1"}
    await visitor.does("PUT", f"{here}/shadow/properties", {**found, "mine": "2"})
    await visitor.fails(412, "PUT", f"{here}/shadow/properties", {"PULSAR.SHADOW_SOURCE": "plain"})
    await visitor.fails(412, "DELETE", f"{here}/shadow/properties?key=PULSAR.SHADOW_SOURCE")
    assert await visitor.get(f"{here}/shadow/properties") == {**found, "mine": "2"}


async def test_two_who_write_at_once_do_not_lose_anything(visitor: Visitor) -> None:
    here = "/admin/v2/persistent/public/default/p"
    await visitor.does("PUT", f"{here}/partitions", 1)
    for number in range(3):
        await visitor.does("PUT", f"{here}/properties", {str(number): "x"})
    assert await visitor.get(f"{here}/properties") == {"0": "x", "1": "x", "2": "x"}
