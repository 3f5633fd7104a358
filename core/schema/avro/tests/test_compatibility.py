"""The stricter judge, by hand; `interop_tests` compares thousands of pairs with Avro's own."""

from __future__ import annotations

import time
from typing import Any

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.compatibility import Comparison, incompatibility
from magnetar.core.schema.avro.tests.test_parser import read, record
from magnetar.core.schema.definitions import Effort

E_AB = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
E_A = {"type": "enum", "name": "E", "symbols": ["A"]}


def reason(writer: Any, reader: Any) -> str:
    return incompatibility(read(writer), read(reader))


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("int", "double"),
        (["int", "null"], ["null", "double"]),
        (record("a.R", ("x", "int")), record("b.R", ("x", "long"))),
        (record("n.R"), record("Q", aliases=["n.R"])),
        (record("R", ("x", "int")), record("R", {"name": "y", "type": "int", "aliases": ["x"]})),
        (record("R"), record("R", {"name": "x", "type": "int", "default": "not looked at"})),
        (E_AB, {**E_A, "default": "A"}),
        (E_A, E_AB),
        (record("L", ("next", ["null", "L"])), record("L", ("next", ["null", "L"]))),
    ],
)
def test_compatible(writer: Any, reader: Any) -> None:
    assert reason(writer, reader) == ""


@pytest.mark.parametrize(
    ("writer", "reader", "why"),
    [
        ("long", "int", "long is not read as int"),
        (["int", "null"], "int", "null is not read as int"),
        ("boolean", ["null", "int"], "no branch"),
        (record("R"), record("Q"), "R is not named Q"),
        (record("R"), record("R", ("x", "int")), "R.x has no default"),
        (E_AB, E_A, "E lacks the symbol B"),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            "another size",
        ),
        (
            record("R", ("x", "int"), ("y", "int")),
            record("R", {"name": "z", "type": "int", "aliases": ["x", "y"]}),
            "several counterparts",
        ),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, "long is not read"),
    ],
)
def test_incompatible(writer: Any, reader: Any, why: str) -> None:
    assert why in reason(writer, reader)


def test_long_lists_are_refused_soon() -> None:
    """Each of many long enums is compared with all others, the last of which takes any."""
    symbols = [f"E{number}" for number in range(2_000)]

    def union(letter: str) -> Any:
        spaces = [f"{letter}{number}" for number in range(150)]
        return [
            {"type": "enum", "name": f"{space}.E", "symbols": [*symbols, space]} for space in spaces
        ]

    last = {"type": "enum", "name": "last.E", "symbols": ["x"], "default": "x"}
    begun = time.process_time()
    with pytest.raises(IncompatibleSchema, match="too large"):
        reason(union("a"), [*union("b"), last])
    assert time.process_time() - begun < 5


def test_a_comparison_that_takes_too_long_is_refused() -> None:
    node = read(record("R", *((f"f{number}", "int") for number in range(50))))
    assert Comparison(Effort()).reason(node, node) == ""
    with pytest.raises(IncompatibleSchema, match="too large"):
        Comparison(Effort(steps_max=20)).reason(node, node)
