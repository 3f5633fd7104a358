"""What readers read, by hand; `interop_tests` compares hundreds of pairs with Avro's own judge."""

from __future__ import annotations

import time
from typing import Any

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.resolution import Resolution, refusal
from magnetar.core.schema.avro.tests.test_parser import read, record
from magnetar.core.schema.definitions import Effort


def reason(writer: Any, reader: Any) -> str:
    return refusal(read(writer), read(reader))


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("int", "int"),
        ("int", "double"),
        ("string", "bytes"),
        ("int", ["null", "long"]),
        (["int", "null"], ["null", "double"]),
        (record("R", ("x", "int"), ("y", "int")), record("Q", ("x", "long"))),
        (record("R"), record("R", {"name": "x", "type": ["null", "int"], "default": None})),
        (
            {"type": "enum", "name": "a.E", "symbols": ["A", "B"]},
            {"type": "enum", "name": "b.E", "symbols": ["A"]},
        ),
    ],
)
def test_read(writer: Any, reader: Any) -> None:
    assert reason(writer, reader) == ""


@pytest.mark.parametrize(
    ("writer", "reader", "why"),
    [
        ("long", "int", "long is not read as int"),
        ("null", "string", "null is not read as string"),
        (["int", "null"], "int", "null is not read as int"),
        ("boolean", ["null", "int"], "in no branch"),
        (record("R"), record("R", ("x", "int")), "R.x has no default"),
        (record("R"), record("R", {"name": "x", "type": "int", "default": "a"}), "of its type"),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            "another size",
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "D", "symbols": ["A"]},
            "E is not read as D",
        ),
        (
            {"type": "array", "items": {"type": "map", "values": "long"}},
            {"type": "array", "items": {"type": "map", "values": "int"}},
            "long is not read as int",
        ),
    ],
)
def test_not_read(writer: Any, reader: Any, why: str) -> None:
    assert why in reason(writer, reader)


def test_a_list_reads_itself() -> None:
    chain = record("L", ("next", ["null", "L"]), ("x", "int"))
    assert reason(chain, chain) == ""
    longer = record("L", ("next", ["null", "L"]), ("x", "string"))
    assert "int is not read as string" in reason(chain, longer)


def test_a_chain_of_types_that_is_too_long_is_refused() -> None:
    """Each type is named before it is defined, so the comparison goes deeper with each."""

    def chain(length: int) -> Any:
        last = record(f"R{length}")
        links = [(f"f{n}", record(f"R{n}", ("n", f"R{n + 1}"))) for n in range(length)]
        return record("Top", *links, ("last", last))

    assert reason(chain(50), chain(50)) == ""
    with pytest.raises(IncompatibleSchema, match="too many steps"):
        reason(chain(1_000), chain(1_000))


def test_what_would_take_for_ever_is_refused_soon() -> None:
    """Two unions of thousands of types that have nothing in common; a long enum as the default of
    thousands of values.
    """

    def union(letter: str) -> Any:
        names = [f"{letter}{number}" for number in range(3_000)]
        return [{"type": "fixed", "name": name, "size": 1} for name in names]

    symbols = [f"E{number}" for number in range(9_000)]
    items = {"type": "enum", "name": "E", "symbols": symbols}
    long = {"name": "y", "type": {"type": "array", "items": items}, "default": ["E8999"] * 9_000}
    begun = time.process_time()
    for writer, reader in (
        (union("a"), union("b")),
        (record("R", ("x", "int")), record("R", ("x", "int"), long)),
    ):
        with pytest.raises(IncompatibleSchema, match="too large"):
            reason(writer, reader)
    assert time.process_time() - begun < 5


def test_a_comparison_that_takes_too_long_is_refused() -> None:
    """Each of these unions looks at all those within it."""
    schema: Any = "int"
    for number in range(20):
        schema = ["null", record(f"R{number}", ("f", schema))]
    node = read(schema)
    assert not Resolution(Effort()).resolve(node, node).error
    with pytest.raises(IncompatibleSchema, match="too large"):
        Resolution(Effort(steps_max=30)).resolve(node, node)
