"""JSON Schema as it is read, and what is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.json_schema.model import JsonSchemaNode, meant
from magnetar.core.schema.json_schema.reader import DEPTH_MAX, NODES_MAX, read


def node(schema: Any) -> JsonSchemaNode:
    return read(json.dumps(schema).encode())


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (True, "empty"),
        ({}, "empty"),
        ({"title": "whatever", "format": "date", "examples": [1]}, "empty"),
        (False, "false"),
        ({"type": "integer"}, "number"),
        ({"minimum": 3}, "number"),
        ({"properties": {}}, "object"),
        ({"items": {}}, "array"),
        ({"maxLength": 3}, "string"),
        ({"type": ["string", "null"]}, "any"),
        ({"enum": [1, "a"]}, "enum"),
        ({"const": None}, "const"),
        ({"not": {"type": "string"}}, "not"),
        ({"oneOf": [{}, True]}, "one"),
        ({"type": "string", "enum": ["a"]}, "all"),
        ({"maxLength": 3, "minimum": 3}, "all"),
        ({"if": {"type": "string"}, "then": {}}, "condition"),
        ({"exclusiveMaximum": True, "maximum": 3}, "number"),
    ],
)
def test_kinds(schema: Any, kind: str) -> None:
    assert node(schema).kind == kind


def test_an_object() -> None:
    found = node(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": True},
            "patternProperties": {"^x": {"type": "null"}},
            "additionalProperties": {"type": "integer"},
            "dependencies": {"a": ["b"], "b": {"type": "object"}},
        }
    )
    assert {name: each.kind for name, each in found.members.items()} == {
        "a": "string",
        "b": "empty",
    }
    assert [(text, each.kind) for text, each in found.patterns] == [("^x", "null")]
    assert isinstance(found.additional, JsonSchemaNode)
    assert list(found.dependents) == ["b"]


@pytest.mark.parametrize(
    "schema",
    [
        {"items": [{"type": "string"}], "additionalItems": False},
        {"prefixItems": [{"type": "string"}], "items": False},
    ],
)
def test_an_array_of_rows(schema: Any) -> None:
    found = node(schema)
    assert [each.kind for each in found.parts] == ["string"]
    assert found.additional is False
    assert found.inner is None


def test_references() -> None:
    found = node(
        {
            "type": "object",
            "properties": {
                "next": {"$ref": "#"},
                "one": {"$ref": "#/$defs/a~1b%20c"},
                "row": {"$ref": "#/$defs/row/prefixItems/1"},
            },
            "$defs": {"a/b c": {"type": "null"}, "row": {"prefixItems": [{}, {"const": 1}]}},
        }
    )
    kinds = {name: meant(each).kind for name, each in found.members.items()}
    assert kinds == {"next": "object", "one": "null", "row": "const"}
    assert meant(found.members["next"]) is found


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], "no schema"),
        ("string", "no schema"),
        ({"type": "text"}, "no type text"),
        ({"type": []}, "a name"),
        ({"type": [["string"]]}, "no type"),
        ({"properties": []}, "properties is an object"),
        ({"properties": {"a": 7}}, "no schema"),
        ({"required": "a"}, "list of names"),
        ({"required": [1]}, "list of names"),
        ({"dependentRequired": {"a": "b"}}, "list of names"),
        ({"dependencies": {"a": [1]}}, "list of names"),
        ({"anyOf": []}, "list of schemas"),
        ({"prefixItems": {}}, "list of schemas"),
        ({"enum": "a"}, "enum is a list"),
        ({"minLength": -1}, "at least 0"),
        ({"maxItems": 1.5}, "at least 0"),
        ({"maximum": "3"}, "no number"),
        ({"multipleOf": 0}, "no number"),
        ({"pattern": 7}, "pattern is a text"),
        ({"$ref": "other.json"}, "another document"),
        ({"$ref": "#/$defs/a"}, "refers to nothing"),
        ({"$ref": "#"}, "each other"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "each other"),
    ],
)
def test_refused(schema: Any, why: str) -> None:
    with pytest.raises(IncompatibleSchema, match=why):
        node(schema)


@pytest.mark.parametrize("definition", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a":1} x'])
def test_what_is_no_json(definition: bytes) -> None:
    with pytest.raises(IncompatibleSchema, match="no JSON"):
        read(definition)


def test_limits() -> None:
    deep: Any = {}
    for _ in range(DEPTH_MAX):
        deep = {"not": deep}
    with pytest.raises(IncompatibleSchema, match="deep"):
        node(deep)
    assert node(deep["not"]).kind == "not"
    with pytest.raises(IncompatibleSchema, match="more than"):
        node({"anyOf": [{}] + [{"const": each} for each in range(NODES_MAX)]})


WORDS = st.sampled_from(
    (
        *("type", "properties", "required", "items", "prefixItems", "additionalItems", "enum"),
        *("anyOf", "allOf", "oneOf", "not", "$ref", "additionalProperties", "patternProperties"),
        *("dependencies", "minimum", "multipleOf", "maxLength", "pattern", "const", "default"),
    )
)
SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats()),
    st.sampled_from(
        ["string", "integer", "object", "array", "#", "#/items", "#/properties/a", "a"]
    ),
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(WORDS | st.sampled_from("ab"), inner, max_size=4),
    ),
    max_leaves=20,
)


@given(SCHEMAS)
def test_anything_is_a_schema_or_is_refused(schema: Any) -> None:
    with suppress(IncompatibleSchema):
        node(schema)


@given(st.binary(max_size=40))
def test_any_bytes(definition: bytes) -> None:
    with suppress(IncompatibleSchema):
        read(definition)
