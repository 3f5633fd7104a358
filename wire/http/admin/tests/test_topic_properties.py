"""Properties, and what may not be one; how they are kept is told by `test_topics.py`."""

from typing import Any

import pytest
from starlette.exceptions import HTTPException

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


def test_nor_is_a_shadow() -> None:
    with pytest.raises(HTTPException):
        checked({"PULSAR.SHADOW_SOURCE": "a"})


async def test_two_who_write_at_once_do_not_lose_anything(visitor: Visitor) -> None:
    here = "/admin/v2/persistent/public/default/p"
    await visitor.does("PUT", f"{here}/partitions", 1)
    for number in range(3):
        await visitor.does("PUT", f"{here}/properties", {str(number): "x"})
    assert await visitor.get(f"{here}/properties") == {"0": "x", "1": "x", "2": "x"}
