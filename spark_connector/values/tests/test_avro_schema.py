"""Schemas of Avro: which types they are, and which are refused."""

import json

import pyarrow as pa
import pytest

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values.avro_schema import arrow_type, parse


def kind(schema: object) -> pa.DataType:
    return arrow_type(parse(json.dumps(schema)))


def record(*types: object, **more: object) -> dict:
    fields = [{"name": f"f{number}", "type": one} for number, one in enumerate(types)]
    return {"type": "record", "name": "R", "fields": fields, **more}


def logical(plain: object, name: str, **more: object) -> dict:
    return {"type": plain, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, pa.string()),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary()),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        ({"type": {"type": "map", "values": "int"}}, pa.map_(pa.string(), pa.int32())),
        (["null", "string"], pa.string()),
        (["string"], pa.string()),
        (["int", "null", "long"], pa.int64()),
        (["double", "float"], pa.float64()),
        (["null", "int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
        (logical("int", "date"), pa.date32()),
        (logical("int", "time-millis"), pa.int32()),
        (logical("long", "time-micros"), pa.int64()),
        (logical("long", "timestamp-millis"), pa.timestamp("us", "UTC")),
        (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
        (logical("long", "timestamp-nanos"), pa.int64()),
        (logical("long", "local-timestamp-millis"), pa.timestamp("us")),
        (logical("string", "uuid"), pa.string()),
        (logical("int", "uuid"), pa.int32()),
        (logical("bytes", "decimal", precision=8, scale=2), pa.decimal128(8, 2)),
        (logical("bytes", "decimal", precision=2, scale=8), pa.binary()),
        ({"type": "fixed", "name": "F", "size": 9, "logicalType": "decimal", "precision": 20},
         pa.decimal128(20, 0)),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, pa.string()),
        ({"type": "fixed", "name": "U", "size": 8, "logicalType": "uuid"}, pa.binary()),
        (record("int", ["null", "string"]), pa.struct([("f0", pa.int32()), ("f1", pa.string())])),
        (["int", logical("long", "timestamp-millis")],
         pa.struct([("member0", pa.int32()), ("member1", pa.timestamp("us", "UTC"))])),
    ],
)  # fmt: skip
def test_the_type_of_each_schema(schema, expected) -> None:
    assert kind(schema) == expected


def test_names_are_found_in_their_namespaces() -> None:
    color = {"type": "enum", "name": "Color", "symbols": ["red"]}
    both = pa.struct([("f0", pa.string()), ("f1", pa.string())])
    assert kind(record(color, "Color", namespace="a.b")) == both
    assert kind(record(color, "a.b.Color", namespace="a.b")) == both
    assert kind(record({**color, "name": "x.Color"}, "x.Color", namespace="a.b")) == both
    assert kind(record({**color, "namespace": "x"}, "x.Color")) == both


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (record(["null", "R"], namespace="shop"), '"shop.R" has itself in it'),
        (record({"type": "array", "items": "R"}), '"R" has itself in it'),
        (record("Other"), "the type Other is named and not defined"),
        ("null", "null alone"),
        (record("null"), "null alone has no values"),
        (record(), 'record "R" has no fields'),
        ({"type": "record", "name": "R", "fields": [{"type": "int"}]}, "has no name"),
        ({"type": "record", "fields": []}, "has no name"),
        (record({"type": "fixed", "name": "F", "size": 0}), '"F" has no size'),
        (record({"type": "enum", "name": "E"}), "symbols must be a list of texts"),
        (record({"type": "array"}), "no type of Avro: null"),
        ([], "no union"),
        (["null"], "no union"),
        ([["int"], "string"], "a union is directly in a union"),
        (17, "no type of Avro: 17"),
        ({"items": "int"}, "no type of Avro"),
        (logical("bytes", "decimal", precision=39), "39 digits"),
        (record(record("int")), "the type R is defined twice"),
    ],
)
def test_what_is_refused_is_named(schema, said) -> None:
    with pytest.raises(OptionError) as raised:
        kind(schema)
    assert said in str(raised.value)


def test_names_may_be_used_before_they_are_defined() -> None:
    later = record("Color", {"type": "enum", "name": "Color", "symbols": ["red"]})
    assert kind(later) == pa.struct([("f0", pa.string()), ("f1", pa.string())])


def test_types_beside_each_other_may_be_too_deep() -> None:
    chain = [record("int", name="R0")] + [record(f"R{n}", name=f"R{n + 1}") for n in range(100)]
    assert kind(record(*chain[:20], name="Top")).num_fields == 20
    with pytest.raises(OptionError, match="more than 64 deep"):
        kind(record(*reversed(chain), name="Top"))


def test_a_type_in_many_places_is_as_many_types() -> None:
    """Some kilobytes of them, each with two of the one before, would be a million million."""
    twos = [record("int", name="R0")] + [
        record(f"R{n}", f"R{n}", name=f"R{n + 1}") for n in range(40)
    ]
    assert kind(record(*twos[:9], name="Top")).num_fields == 9
    with pytest.raises(OptionError, match="more than 10000 types, as Spark counts them"):
        kind(record(*twos, name="Top"))


@pytest.mark.parametrize("text", ["", "{", "string", "[" * 100_000])
def test_what_is_no_json(text) -> None:
    with pytest.raises(OptionError, match="no JSON"):
        parse(text)
