"""Defaults and their types."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.defaults import fits
from magnetar.core.schema.avro.tests.test_parser import read, record
from magnetar.core.schema.definitions import Effort

POINT = record("P", ("x", "int"), {"name": "y", "type": "int", "default": 0})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("null", None),
        ("boolean", False),
        ("int", 1),
        ("double", 1),
        ("long", 1.5),
        ("string", "a"),
        ("bytes", "\u00ff"),
        (["null", "int"], None),
        (["null", "int"], 7),
        ({"type": "array", "items": "int"}, [1, 2]),
        ({"type": "map", "values": "int"}, {"a": 1}),
        ({"type": "map", "values": "int"}, [1]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A"),
        (POINT, {"x": 1}),
    ],
)
def test_fits(schema: Any, value: Any) -> None:
    assert fits(read(schema), value, Effort())


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("null", 0),
        ("boolean", 1),
        ("int", True),
        ("int", "1"),
        ("string", None),
        (["null", "int"], "a"),
        ({"type": "array", "items": "int"}, ["a"]),
        ({"type": "map", "values": "int"}, {"a": None}),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        (POINT, {"y": 1}),
        (POINT, {"x": "a"}),
    ],
)
def test_does_not_fit(schema: Any, value: Any) -> None:
    assert not fits(read(schema), value, Effort())


def test_a_record_whose_default_contains_it() -> None:
    endless = record("R", {"name": "again", "type": "R", "default": {}})
    with pytest.raises(IncompatibleSchema, match="too many steps"):
        fits(read(endless), {}, Effort())
