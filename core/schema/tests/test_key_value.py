"""Schemas of pairs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.key_value import from_json, halves, joined, to_json
from magnetar.core.schema.schema import SchemaKind, TopicSchema

RECORD = b'{"type": "record", "name": "R", "fields": []}'


def pair(key: str, value: str, definition: bytes, **more: str) -> TopicSchema:
    properties = {"key.schema.type": key, "value.schema.type": value, **more}
    return TopicSchema(SchemaKind.KEY_VALUE, definition, properties)


def test_halves() -> None:
    more = {"value.schema.properties": '{"a": "b"}'}
    key, value = halves(pair("STRING", "AVRO", joined(b"", RECORD), **more))
    assert key == TopicSchema(SchemaKind.STRING)
    assert value == TopicSchema(SchemaKind.AVRO, RECORD, {"a": "b"})


def test_kinds_that_are_not_said_are_bytes() -> None:
    definition = b"\xff\xff\xff\xff" + joined(b"", b"")[4:]
    key, value = halves(TopicSchema(SchemaKind.KEY_VALUE, definition))
    assert key.kind is value.kind is SchemaKind.BYTES
    assert key.definition == b""


@pytest.mark.parametrize(
    "definition",
    [b"", b"\0\0", b"\0\0\0\5ab", b"\xff\xff\xff\xfe" + b"\0" * 8, joined(b"a", b"b") + b"c"],
)
def test_what_is_no_pair(definition: bytes) -> None:
    with pytest.raises(IncompatibleSchema):
        halves(TopicSchema(SchemaKind.KEY_VALUE, definition))


@pytest.mark.parametrize(
    "properties",
    [
        {"key.schema.type": "NOTHING"},
        {"value.schema.type": "KEY_VALUE"},
        {"key.schema.properties": "{"},
        {"key.schema.properties": '{"a": 1}'},
        {"key.schema.properties": "[" * 100_000},
        {"key.schema.properties": '{"\ud800": ""}'},
    ],
)
def test_what_the_properties_may_not_say(properties: dict[str, str]) -> None:
    with pytest.raises(IncompatibleSchema):
        halves(TopicSchema(SchemaKind.KEY_VALUE, joined(b"", b""), properties))


def test_as_tools_write_it() -> None:
    schema = pair("STRING", "AVRO", joined(b"", RECORD))
    assert json.loads(to_json(schema)) == {"key": "", "value": json.loads(RECORD)}
    written = from_json(to_json(schema))
    key, value = halves(pair("STRING", "AVRO", written))
    assert (key.definition, json.loads(value.definition)) == (b"", json.loads(RECORD))


@pytest.mark.parametrize("text", ["", "7", "[]", "{}", '{"key": ""}', "{" * 100_000, '{"\ud800"'])
def test_what_tools_may_not_write(text: str) -> None:
    with pytest.raises(IncompatibleSchema):
        from_json(text)


@given(st.binary(max_size=30), st.dictionaries(st.text(max_size=20), st.text(max_size=20)))
def test_any_bytes_are_a_pair_or_refused(definition: bytes, properties: Any) -> None:
    try:
        for half in halves(TopicSchema(SchemaKind.KEY_VALUE, definition, properties)):
            assert half.definition in definition
    except IncompatibleSchema:
        pass
