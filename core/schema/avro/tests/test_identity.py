"""When two definitions are the same schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.schema.avro import parser
from magnetar.core.schema.avro.compatibility import incompatibility
from magnetar.core.schema.avro.identity import identity_of
from magnetar.core.schema.avro.resolution import refusal
from magnetar.core.schema.avro.tests.test_parser import read, record

X = {"name": "x", "type": "int"}
R = record("R", X)


def same(one: Any, other: Any) -> bool:
    return identity_of(read(one)) == identity_of(read(other))


def test_white_space_and_order_of_keys() -> None:
    spaced = b'{ "fields" : [ {"type":"int","name":"x"} ],\n"name":"R", "type":"record"}'
    assert identity_of(parser.parse(spaced)) == identity_of(read(R))


@pytest.mark.parametrize(
    "other",
    [
        {**R, "doc": "about"},
        {**R, "aliases": ["Q"]},
        record("R", {**X, "doc": "about"}),
        record("R", {**X, "aliases": ["y"]}),
        record("R", {**X, "order": "ascending"}),
        record("R", {**X, "type": {"type": "int"}}),
    ],
)
def test_what_makes_no_difference(other: Any) -> None:
    assert same(R, other)


@pytest.mark.parametrize(
    "other",
    [
        record("Q", X),
        {**R, "namespace": "n"},
        {**R, "more": 1},
        record("R", {**X, "default": 0}),
        record("R", {**X, "default": None}),
        record("R", {**X, "order": "ignore"}),
        record("R", {**X, "more": 1}),
        record("R", {**X, "type": "long"}),
        record("R", {**X, "type": ["int"]}),
        record("R", {**X, "type": {"type": "int", "logicalType": "date"}}),
        record("R", X, ("y", "int")),
        record("R"),
    ],
)
def test_what_does(other: Any) -> None:
    assert not same(R, other)


def test_the_order_of_fields_does() -> None:
    one, other = record("R", X, ("y", "int")), record("R", ("y", "int"), X)
    assert not same(one, other)


def test_a_type_that_contains_itself() -> None:
    chain = record("L", ("next", ["null", "L"]))
    assert same(chain, chain)
    assert not same(chain, record("L", ("next", ["L", "null"])))


def test_a_long_chain_of_types_that_are_named_before_they_are_defined() -> None:
    count = 3_000
    links = [
        (f"f{n}", record(f"R{n}", ("n", f"R{n + 1}")) if n < count else record(f"R{n}"))
        for n in range(count + 1)
    ]
    assert same(record("Top", *links), record("Top", *links))


KINDS = ("int", "string", "enum", "fixed", "array", "map", "union", "record")


def named(draw: Any, kind: str) -> str:
    """A name that no other type of the schema has."""
    return f"{kind}{draw(st.uuids()).hex}"


@st.composite
def schemas(draw: Any, depth: int = 3) -> Any:
    """Any schema, whose defaults are of their types."""
    kind = draw(st.sampled_from(KINDS))
    if kind in ("int", "string") or not depth:
        return kind if kind in ("int", "string") else "long"
    if kind == "enum":
        return {"type": kind, "name": named(draw, "E"), "symbols": ["A", "B"]}
    if kind == "fixed":
        return {"type": kind, "name": named(draw, "F"), "size": draw(st.integers(0, 9))}
    if kind in ("array", "map"):
        part = "items" if kind == "array" else "values"
        return {"type": kind, part: draw(schemas(depth - 1))}
    if kind == "union":
        inner = draw(schemas(depth - 1))
        return ["null"] if isinstance(inner, list) else ["null", inner]
    count = draw(st.integers(0, 4))
    fields = [(f"f{number}", draw(schemas(depth - 1))) for number in range(count)]
    return record(named(draw, "R"), *fields)


@given(schemas())
def test_every_schema_reads_itself(schema: Any) -> None:
    one, other = read(schema), read(schema)
    assert refusal(one, other) == incompatibility(one, other) == ""
    assert identity_of(one) == identity_of(other)


@given(schemas(), st.sampled_from(["a", "f0"]))
def test_a_field_with_a_default_goes_both_ways(schema: Any, name: str) -> None:
    old = record("Top", ("f1", schema))
    new = record("Top", ("f1", schema), {"name": name, "type": ["null", "int"], "default": None})
    for writer, reader in ((old, new), (new, old)):
        assert refusal(read(writer), read(reader)) == ""
        assert incompatibility(read(writer), read(reader)) == ""
    assert not same(old, new)
