"""Which schemas are valid, and which may follow which."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.schema import verdicts
from magnetar.core.schema.key_value import joined
from magnetar.core.schema.schema import SchemaKind, TopicSchema
from magnetar.core.schema.tests.test_key_value import pair
from magnetar.core.schema.tests.test_protobuf_native import TIME, TIMESTAMP, definition

DURATION = definition("other.Duration", "d.proto", type(TIME)(name="d.proto", package="other"))


def avro(*fields: Any, kind: SchemaKind = SchemaKind.AVRO) -> TopicSchema:
    record = {"type": "record", "name": "R", "fields": list(fields)}
    return TopicSchema(kind, json.dumps(record).encode())


X = {"name": "x", "type": "int"}
Y = {"name": "y", "type": "int"}
Y_OR_0 = {**Y, "default": 0}
ONE, MORE, MORE_OR_0 = avro(X), avro(X, Y), avro(X, Y_OR_0)


def may_follow(old: TopicSchema, new: TopicSchema, strategy: str, **more: bool) -> bool:
    try:
        verdicts.check_follows(old, new, SchemaStrategy(strategy), **more)
    except IncompatibleSchema:
        return False
    return True


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (ONE, MORE_OR_0, {"BACKWARD", "FORWARD", "FULL"}),
        (ONE, MORE, {"FORWARD"}),
        (MORE, ONE, {"BACKWARD"}),
        (ONE, avro({"name": "x", "type": "long"}), {"BACKWARD"}),
        (ONE, avro({"name": "x", "type": "string"}), set()),
    ],
)
@pytest.mark.parametrize("suffix", ["", "_TRANSITIVE"])
def test_avro(old: TopicSchema, new: TopicSchema, allowed: set[str], suffix: str) -> None:
    for strategy in ("BACKWARD", "FORWARD", "FULL"):
        assert may_follow(old, new, strategy + suffix) == (strategy in allowed)
    assert may_follow(old, new, "ALWAYS_COMPATIBLE")
    assert not may_follow(old, new, "ALWAYS_INCOMPATIBLE")
    assert not may_follow(old, new, "UNDEFINED")


def test_a_reason_is_short_however_long_names_are() -> None:
    long = avro(X, {**Y, "name": "y" * 100_000})
    with pytest.raises(IncompatibleSchema) as refused:
        verdicts.check_follows(ONE, long, SchemaStrategy.FULL)
    assert len(str(refused.value)) < 1_000


def test_a_schema_follows_itself() -> None:
    assert may_follow(ONE, ONE, "ALWAYS_INCOMPATIBLE")
    assert not may_follow(ONE, ONE, "ALWAYS_INCOMPATIBLE", by_itself=False)
    assert may_follow(ONE, ONE, "FULL_TRANSITIVE", by_itself=False)


def test_the_kind_stays() -> None:
    assert not may_follow(ONE, avro(X, kind=SchemaKind.JSON), "FULL")
    assert may_follow(ONE, TopicSchema(SchemaKind.STRING), "ALWAYS_COMPATIBLE")
    assert may_follow(TopicSchema(SchemaKind.INT64), TopicSchema(SchemaKind.INT64), "FULL")
    assert not may_follow(TopicSchema(SchemaKind.INT64), TopicSchema(SchemaKind.INT32), "FULL")
    python, java = TopicSchema(SchemaKind.STRING, b"null"), TopicSchema(SchemaKind.STRING)
    assert may_follow(python, java, "FULL")


def test_json_and_protobuf_are_compared_as_avro() -> None:
    for kind in (SchemaKind.JSON, SchemaKind.PROTOBUF):
        assert may_follow(avro(X, kind=kind), avro(X, Y_OR_0, kind=kind), "FULL")
        assert not may_follow(avro(X, kind=kind), avro(X, Y, kind=kind), "FULL")


def test_pairs() -> None:
    def of(value: TopicSchema, key: str = "STRING") -> TopicSchema:
        return pair(key, "AVRO", joined(b"", value.definition))

    assert may_follow(of(ONE), of(MORE_OR_0), "FULL")
    assert not may_follow(of(ONE), of(MORE), "FULL")
    assert not may_follow(of(ONE), of(MORE_OR_0, "INT64"), "FULL")


def test_json_schema_is_compared_by_its_own_rules() -> None:
    whole, number = (
        TopicSchema(SchemaKind.JSON_SCHEMA, b'{"type": "%b"}' % kind)
        for kind in (b"integer", b"number")
    )
    verdicts.check_follows(whole, number, SchemaStrategy.BACKWARD)
    verdicts.check_follows(number, whole, SchemaStrategy.FORWARD)
    for strategy in (SchemaStrategy.FORWARD, SchemaStrategy.FULL):
        with pytest.raises(IncompatibleSchema, match="integer"):
            verdicts.check_follows(whole, number, strategy)
    spaced = TopicSchema(SchemaKind.JSON_SCHEMA, b'{ "type" : "integer" }')
    assert verdicts.identity_of(spaced) == verdicts.identity_of(whole)
    assert verdicts.identity_of(number) != verdicts.identity_of(whole)


def test_protobuf_text_is_compared_by_its_own_rules() -> None:
    one, two, other = (
        TopicSchema(SchemaKind.PROTOBUF_TEXT, b'syntax = "proto3"; message M { %b a = 1; }' % kind)
        for kind in (b"int32", b"int64", b"string")
    )
    verdicts.check_valid(one)
    verdicts.check_follows(one, two, SchemaStrategy.FULL)
    with pytest.raises(IncompatibleSchema, match="field 1"):
        verdicts.check_follows(one, other, SchemaStrategy.BACKWARD)
    noted = TopicSchema(SchemaKind.PROTOBUF_TEXT, one.definition + b" // a note")
    assert verdicts.identity_of(noted) == verdicts.identity_of(one)
    assert verdicts.identity_of(two) != verdicts.identity_of(one)


def test_protobuf_keeps_its_root_message() -> None:
    native = TopicSchema(SchemaKind.PROTOBUF_NATIVE, TIMESTAMP)
    same = TopicSchema(SchemaKind.PROTOBUF_NATIVE, TIMESTAMP + b" ")
    other_file = type(TIME)(name="d.proto", package="other")
    other_file.message_type.add(name="Duration")
    moved = definition("other.Duration", "d.proto", other_file)
    assert may_follow(native, same, "FULL")
    assert not may_follow(native, TopicSchema(SchemaKind.PROTOBUF_NATIVE, moved), "FULL")


VALID = {
    "avro": ONE,
    "a single type": TopicSchema(SchemaKind.AVRO, b'"string"'),
    "json": avro(X, kind=SchemaKind.JSON),
    "python's string": TopicSchema(SchemaKind.STRING, b"null"),
    "string": TopicSchema(SchemaKind.STRING),
    "another registry's": TopicSchema(SchemaKind.EXTERNAL, b"\x00 anything"),
    "int64": TopicSchema(SchemaKind.INT64),
    "protobuf": TopicSchema(SchemaKind.PROTOBUF_NATIVE, TIMESTAMP),
    "a pair": pair("STRING", "AVRO", joined(b"null", ONE.definition)),
    "bytes": TopicSchema(SchemaKind.BYTES, b"whatever"),
}
INVALID = {
    "no avro": TopicSchema(SchemaKind.AVRO, b"{"),
    "a union": TopicSchema(SchemaKind.AVRO, b'["null", "int"]'),
    "no json": TopicSchema(SchemaKind.JSON, b'{"type": "object"}'),
    "a string with a definition": TopicSchema(SchemaKind.STRING, b"text"),
    "a number with one": TopicSchema(SchemaKind.INT64, b"null"),
    "no protobuf": TopicSchema(SchemaKind.PROTOBUF_NATIVE, DURATION),
    "half a pair": pair("STRING", "AVRO", joined(b"", b"{")),
    "no pair": TopicSchema(SchemaKind.KEY_VALUE, b"{}"),
    "a client's": TopicSchema(SchemaKind.AUTO_CONSUME),
}


@pytest.mark.parametrize("schema", VALID.values(), ids=VALID)
def test_valid(schema: TopicSchema) -> None:
    verdicts.check_valid(schema)
    assert verdicts.identity_of(schema) == verdicts.identity_of(schema)


@pytest.mark.parametrize("schema", INVALID.values(), ids=INVALID)
def test_invalid(schema: TopicSchema) -> None:
    with pytest.raises(IncompatibleSchema):
        verdicts.check_valid(schema)


def test_what_another_registry_judges_follows_its_kind_only() -> None:
    one, other = (TopicSchema(SchemaKind.EXTERNAL, each) for each in (b"1", b"2"))
    verdicts.check_follows(one, other, SchemaStrategy.FULL_TRANSITIVE)
    assert verdicts.identity_of(one) != verdicts.identity_of(other)
    with pytest.raises(IncompatibleSchema):
        verdicts.check_follows(one, ONE, SchemaStrategy.FULL)


def test_identity() -> None:
    spaced = TopicSchema(SchemaKind.AVRO, ONE.definition.replace(b":", b" : "))
    assert verdicts.identity_of(spaced) == verdicts.identity_of(ONE)
    assert verdicts.identity_of(avro(X, kind=SchemaKind.JSON)) != verdicts.identity_of(ONE)
    assert verdicts.identity_of(MORE) != verdicts.identity_of(ONE)


def test_identity_of_pairs() -> None:
    """Numbers have no definition: pairs of them differ in what the properties say."""
    nothing = joined(b"", b"")
    one, other = pair("INT32", "STRING", nothing), pair("INT64", "STRING", nothing)
    assert verdicts.identity_of(one) != verdicts.identity_of(other)
    assert not may_follow(one, other, "FULL")
    inline = pair("INT32", "STRING", nothing, **{"kv.encoding.type": "INLINE"})
    assert verdicts.identity_of(inline) == verdicts.identity_of(one)
    apart = pair("INT32", "STRING", nothing, **{"kv.encoding.type": "SEPARATED", "more": "x"})
    assert verdicts.identity_of(apart) != verdicts.identity_of(one)
    assert may_follow(one, apart, "FULL")
    assert not may_follow(one, apart, "ALWAYS_INCOMPATIBLE")
    assert may_follow(one, inline, "ALWAYS_INCOMPATIBLE")


@pytest.mark.parametrize(
    ("strategy", "by", "with_all"),
    [
        ("BACKWARD", "BACKWARD", False),
        ("FORWARD", "BACKWARD", False),
        ("FORWARD_TRANSITIVE", "BACKWARD", False),
        ("FULL", "BACKWARD", False),
        ("BACKWARD_TRANSITIVE", "BACKWARD_TRANSITIVE", True),
        ("FULL_TRANSITIVE", "FULL_TRANSITIVE", True),
        ("ALWAYS_INCOMPATIBLE", "ALWAYS_INCOMPATIBLE", True),
    ],
)
def test_consumers(strategy: str, by: str, with_all: bool) -> None:
    found = verdicts.of_consumer(SchemaStrategy(strategy))
    assert found == (SchemaStrategy(by), with_all)
