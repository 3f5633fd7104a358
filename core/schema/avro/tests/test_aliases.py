"""A writer's names, and what its reader calls them."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.aliases import renamed
from magnetar.core.schema.avro.resolution import refusal
from magnetar.core.schema.avro.tests.test_parser import read, record
from magnetar.core.schema.definitions import Effort

WRITER = record("n.Old", ("x", "int"), ("next", ["null", "n.Old"]))


def test_no_aliases_no_copy() -> None:
    writer = read(WRITER)
    assert renamed(writer, read(record("Q", ("x", "int"))), Effort()) is writer


def test_a_field() -> None:
    reader = record("n.Old", {"name": "y", "type": "int", "aliases": ["x"]})
    made = renamed(read(WRITER), read(reader), Effort())
    assert list(made.fields) == ["y", "next"]
    assert refusal(read(WRITER), read(reader)) == ""


def test_a_type_and_what_is_in_it() -> None:
    reader = record("New", {"name": "y", "type": "int", "aliases": ["x"]}, aliases=["n.Old"])
    made = renamed(read(WRITER), read(reader), Effort())
    assert made.full_name == "New"
    assert list(made.fields) == ["y", "next"]
    assert made.fields["next"].type.parts[1] is made


def test_an_enum() -> None:
    old = {"type": "enum", "name": "E", "symbols": ["A"]}
    new = {"type": "enum", "name": "D", "symbols": ["A"], "aliases": ["E"]}
    assert refusal(read(old), read(new)) == ""
    assert refusal(read(new), read(old)) != ""


def test_two_fields_of_one_name() -> None:
    writer = record("R", ("x", "int"), ("y", "int"))
    reader = record("R", {"name": "y", "type": "int", "aliases": ["x"]})
    with pytest.raises(IncompatibleSchema, match="alias"):
        renamed(read(writer), read(reader), Effort())
