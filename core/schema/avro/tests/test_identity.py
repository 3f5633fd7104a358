"""When two definitions are the same schema."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.schema.avro import parser
from magnetar.core.schema.avro.identity import identity_of
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
