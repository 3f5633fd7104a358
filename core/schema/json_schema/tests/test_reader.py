"""JSON Schema as it is read, and what is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.json_schema import reader
from magnetar.core.schema.json_schema.model import JsonSchemaNode, meant
from magnetar.core.schema.json_schema.reader import DEPTH_MAX, NODES_MAX, read
from magnetar.core.schema.json_schema.tests.table import DRAFT_2020
from magnetar.core.schema.schema import ImportedSchema


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
        {**DRAFT_2020, "prefixItems": [{"type": "string"}], "items": False},
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
        ({**DRAFT_2020, "dependentRequired": {"a": "b"}}, "list of names"),
        ({**DRAFT_2020, "dependentRequired": {"a": True}}, "list of names"),
        ({"dependencies": {"a": [1]}}, "list of names"),
        ({"anyOf": []}, "list of schemas"),
        ({**DRAFT_2020, "prefixItems": {}}, "list of schemas"),
        ({"enum": "a"}, "enum is a list"),
        ({"minLength": -1}, "at least 0"),
        ({"maxItems": 1.5}, "at least 0"),
        ({"maximum": "3"}, "no number"),
        ({"multipleOf": 0}, "no number"),
        ({"pattern": 7}, "pattern is a text"),
        ({"$ref": "other.json"}, "document that is not known"),
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


@pytest.mark.parametrize(
    ("own", "name", "reference"),
    [
        ("", "n.json", "n.json"),
        ("", "n.json", "n.json#/$defs/Text"),
        ("https://example.org/a/all.json", "n.json", "n.json"),
        ("https://example.org/a/all.json", "n.json", "https://example.org/a/n.json"),
        ("https://example.org/a/all.json", "https://example.org/b/n.json", "../b/n.json"),
        ("", "n.json", "https://example.org/by-its-id.json"),
    ],
)
def test_references_to_other_documents(own: str, name: str, reference: str) -> None:
    """By name, by id, and relative to the id of the document."""
    other = {
        "$id": "https://example.org/by-its-id.json",
        "type": "string",
        "$defs": {"Text": {"type": "string"}},
    }
    imports = [ImportedSchema(name, json.dumps(other).encode())]
    document = {"properties": {"x": {"$ref": reference}}, **({"$id": own} if own else {})}
    found = read(json.dumps(document).encode(), imports)
    assert meant(found.members["x"]).kind == "string"


def test_documents_that_refer_to_each_other() -> None:
    """A pointer without a document leads into the one that says it."""
    line = {"$defs": {"N": {"type": "number"}}, "items": {"$ref": "#/$defs/N"}}
    order = {"properties": {"lines": {"$ref": "line.json"}, "all": {"$ref": "#"}}}
    imports = [
        ImportedSchema(f"{name}.json", json.dumps(each).encode())
        for name, each in (("line", line), ("order", order))
    ]
    found = meant(read(b'{"$ref": "order.json"}', imports))
    lines = meant(found.members["lines"])
    assert lines.inner is not None
    assert meant(lines.inner).kind == "number"
    assert meant(found.members["all"]) is found


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("other.json", "not known"),
        ("n.json#/$defs/None", "to nothing"),
        ("n.json#by-name", "a name of its own"),
        ("http://[", "cannot be a reference"),
    ],
)
def test_references_that_lead_nowhere(reference: str, why: str) -> None:
    schema = {"$id": "https://example.org/all.json", "$ref": reference}
    with pytest.raises(IncompatibleSchema, match=why):
        read(json.dumps(schema).encode(), [ImportedSchema("n.json", b"{}")])


def test_what_it_imports_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "NODES_MAX", 2)
    with pytest.raises(IncompatibleSchema, match="2 schemas"):
        read(b'{"$ref": "n.json"}', [ImportedSchema("n.json", b'{"items": {"type": "string"}}')])
    with pytest.raises(IncompatibleSchema, match="no JSON"):
        read(b'{"$ref": "n.json"}', [ImportedSchema("n.json", b"{")])
