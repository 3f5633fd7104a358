"""What nodes say of themselves."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.json_schema.model import JsonSchemaNode, meant, written


def test_an_object_is_open_if_nothing_limits_what_is_not_named() -> None:
    node = JsonSchemaNode("object")
    assert node.is_open
    node.patterns.append(("a", JsonSchemaNode("empty")))
    assert not node.is_open
    closed = JsonSchemaNode("object")
    closed.additional = False
    assert not closed.is_open


def test_json_has_one_form() -> None:
    assert written({"b": 1, "a": [True, None]}) == written({"a": [True, None], "b": 1})
    assert written(1) != written(True)


def test_references_are_followed_and_not_for_ever() -> None:
    first, second, end = (JsonSchemaNode(kind) for kind in ("reference", "reference", "null"))
    first.inner, second.inner = second, end
    assert meant(first) is end
    second.inner = first
    with pytest.raises(IncompatibleSchema, match="each other"):
        meant(first)
