"""Definitions of Avro, good and hostile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro import parser
from magnetar.core.schema.avro.identity import identity_of
from magnetar.core.schema.avro.model import NO_DEFAULT
from magnetar.core.schema.avro.resolution import refusal


def read(schema: Any) -> parser.AvroNode:
    return parser.parse(json.dumps(schema).encode())


def record(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    pairs = [
        each if isinstance(each, dict) else {"name": each[0], "type": each[1]} for each in fields
    ]
    return {"type": "record", "name": name, "fields": pairs, **more}


def test_a_record() -> None:
    found = read(record("a.R", {"name": "x", "type": ["null", "int"], "default": None}, ("y", "R")))
    assert (found.kind, found.full_name, found.name) == ("record", "a.R", "R")
    assert found.fields["x"].default is None
    assert found.fields["y"].default is NO_DEFAULT
    assert found.fields["y"].type is found


def test_a_name_is_used_before_it_is_defined() -> None:
    found = read(record("R", ("x", "Later"), ("y", {"type": "fixed", "name": "Later", "size": 3})))
    assert found.fields["x"].type is found.fields["y"].type
    assert found.fields["x"].type.size == 3


def test_namespaces() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    found = read(record("R", ("x", inner), ("y", "E"), ("z", "n.E"), namespace="n"))
    assert {found.fields[name].type for name in "xyz"} == {found.fields["x"].type}
    assert found.fields["x"].type.full_name == "n.E"


def test_objects_as_types() -> None:
    """As Avro for Python takes them; not by default, as Java does not (`BAD`)."""
    nested = {"type": {"type": {"type": "array", "items": {"type": ["null", "int"]}}}}
    found = parser.parse(json.dumps(nested).encode(), objects_as_types=True)
    assert (found.kind, [each.kind for each in found.parts[0].parts]) == ("array", ["null", "int"])
    deep: Any = "int"
    for _ in range(parser.DEPTH_MAX):
        deep = {"type": deep}
    with pytest.raises(IncompatibleSchema, match="nested more than 64 deep"):
        parser.parse(json.dumps({"type": deep}).encode(), objects_as_types=True)


BAD = {
    "no json": b"{",
    "no text": b"\xff\xfe",
    "nothing": b"",
    "a number": b"7",
    "an unknown name": b'"R"',
    "no type": b"{}",
    "a type that is none": b'{"type": {"type": "int"}}',
    "no name": b'{"type": "record", "fields": []}',
    "no fields": b'{"type": "record", "name": "R"}',
    "fields that are none": b'{"type": "record", "name": "R", "fields": [7]}',
    "a field without a type": b'{"type": "record", "name": "R", "fields": [{"name": "x"}]}',
    "a name of dots": b'{"type": "record", "name": "...", "fields": []}',
    "a name of blanks": b'{"type": "record", "name": "a b", "fields": []}',
    "a digit first": b'{"type": "record", "name": "1a", "fields": []}',
    "a primitive's name": b'{"type": "record", "name": "int", "fields": []}',
    "no symbols": b'{"type": "enum", "name": "E"}',
    "a symbol twice": b'{"type": "enum", "name": "E", "symbols": ["A", "A"]}',
    "a default that is no symbol": b'{"type": "enum", "name": "E", "symbols": [], "default": "A"}',
    "a default of another kind": b'{"type": "enum", "name": "E", "symbols": [], "default": []}',
    "no size": b'{"type": "fixed", "name": "F"}',
    "a negative size": b'{"type": "fixed", "name": "F", "size": -1}',
    "no items": b'{"type": "array"}',
    "an order that is none": b'{"type": "record", "name": "R", "fields": '
    b'[{"name": "x", "type": "int", "order": "up"}]}',
    "a union in a union": b'["null", ["int"]]',
    "a union with a type twice": b'["int", "int"]',
    "aliases that are none": b'{"type": "record", "name": "R", "fields": [], "aliases": 7}',
}


@pytest.mark.parametrize("definition", BAD.values(), ids=BAD)
def test_what_is_no_schema(definition: bytes) -> None:
    with pytest.raises(IncompatibleSchema):
        parser.parse(definition)


def test_defined_twice() -> None:
    twice = {"type": "fixed", "name": "F", "size": 1}
    with pytest.raises(IncompatibleSchema, match="twice"):
        read(record("R", ("x", twice), ("y", twice)))
    with pytest.raises(IncompatibleSchema, match="twice"):
        read(record("R", ("x", "int"), ("x", "int")))


def test_names_that_pulsar_takes() -> None:
    assert read(record("Outer$Inner", ("größe", "int"))).name == "Outer$Inner"


def test_nested_too_deep() -> None:
    schema: Any = "int"
    for _ in range(parser.DEPTH_MAX - 1):
        schema = {"type": "array", "items": schema}
    read(schema)
    with pytest.raises(IncompatibleSchema, match="deep"):
        read({"type": "array", "items": schema})


@pytest.mark.parametrize("opening", [b"[", b'{"type":"array","items":', b'{"type":'])
def test_nested_without_an_end(opening: bytes) -> None:
    with pytest.raises(IncompatibleSchema):
        parser.parse(opening * 100_000)


def test_too_many_types() -> None:
    with pytest.raises(IncompatibleSchema, match="more than"):
        parser.parse(b"[" + b",".join([b'"int"'] * (parser.TYPES_MAX + 1)) + b"]")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["int", "null", "record", "enum", "array", "R", "n.R", ""])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "name",
                    "fields",
                    "items",
                    "values",
                    "symbols",
                    "size",
                    "default",
                    "aliases",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_schema_or_refused(definition: bytes) -> None:
    try:
        found = parser.parse(definition)
        identity_of(found)
        assert not refusal(found, found) or "default" in refusal(found, found)
    except IncompatibleSchema:
        pass
