"""Avro's encoding: what fastavro has written comes back, and any bytes are a value or a misfit."""

import datetime
import io
import json
import struct
import uuid
from contextlib import suppress
from decimal import Decimal

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from magnetar.spark_connector.values.arrays import column_of
from magnetar.spark_connector.values.avro_decoder import decoder_of, field_of
from magnetar.spark_connector.values.avro_schema import arrow_type, parse
from magnetar.spark_connector.values.misfit import Misfit

UTC = datetime.UTC


def decoded(schema: object, *values: bytes) -> list:
    avro = parse(json.dumps(schema))
    decode = decoder_of(avro)
    column = column_of(arrow_type(avro), field_of)([decode(value) for value in values])
    column.validate(full=True)
    return column.to_pylist()


def written(schema: object, value: object) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def record(**types: object) -> dict:
    fields = [{"name": name, "type": one} for name, one in types.items()]
    return {"type": "record", "name": "R", "fields": fields}


def logical(plain: object, name: str, **more: object) -> dict:
    return {"type": plain, "logicalType": name, **more}


def misfit(schema: object, value: bytes) -> str:
    with pytest.raises(Misfit) as raised:
        decoded(schema, value)
    return str(raised.value)


TIME = datetime.datetime(2026, 1, 31, 12, 0, 0, 123000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (logical("int", "date"), datetime.date(1815, 12, 10)),
        (logical("long", "timestamp-millis"), TIME),
        (logical("long", "timestamp-micros"), TIME.replace(microsecond=1)),
        (logical("long", "local-timestamp-millis"), TIME.replace(tzinfo=None)),
        (logical("long", "local-timestamp-micros"), TIME.replace(tzinfo=None)),
        (logical("bytes", "decimal", precision=8, scale=2), Decimal("-12.50")),
        (logical("bytes", "decimal", precision=38, scale=0), Decimal(10**38 - 1)),
        ({"type": "fixed", "name": "F", "size": 5, **logical("fixed", "decimal", precision=9)},
         Decimal(-(10**9) + 1)),
        (["null", {"type": "enum", "name": "E", "symbols": ["red", "green"]}], "green"),
        (["int", "null", "long"], 2**40),
    ],
)  # fmt: skip
def test_logical_types(schema, value) -> None:
    assert decoded(schema, written(schema, value)) == [value]


def test_an_uuid_is_text_however_it_is_stored() -> None:
    found = uuid.UUID(int=7)
    text = logical("string", "uuid")
    assert decoded(text, written(text, found)) == [str(found)]
    fixed = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
    assert decoded(fixed, found.bytes) == [str(found)]


def test_a_union_of_several_types_is_a_struct() -> None:
    schema = record(u=["null", "string", "int", {"type": "array", "items": "string"}])
    members = ({"member0": "x"}, {"member1": 7}, {"member2": ["a"]})
    empty = dict.fromkeys(("member0", "member1", "member2"))
    values = [written(schema, {"u": one}) for one in (None, "x", 7, ["a"])]
    assert decoded(schema, *values) == [{"u": None}, *({"u": empty | one} for one in members)]


SCHEMA = record(
    b="boolean",
    i="int",
    n=["null", "long"],
    f="float",
    d="double",
    y="bytes",
    s="string",
    x={"type": "fixed", "name": "X", "size": 2},
    a={"type": "array", "items": ["null", "string"]},
    m={"type": "map", "values": "long"},
    o=["null", {"type": "record", "name": "O", "fields": [{"name": "i", "type": "int"}]}],
)
INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
ROWS = st.fixed_dictionaries(
    {
        "b": st.booleans(),
        "i": INT,
        "n": st.none() | LONG,
        "f": st.floats(width=32, allow_nan=False),
        "d": st.floats(allow_nan=False),
        "y": st.binary(max_size=200),
        "s": st.text(max_size=200),
        "x": st.binary(min_size=2, max_size=2),
        "a": st.lists(st.none() | st.text(max_size=3), max_size=100),
        "m": st.dictionaries(st.text(max_size=3), LONG, max_size=5),
        "o": st.none() | st.fixed_dictionaries({"i": INT}),
    }
)


@given(st.lists(ROWS, max_size=4))
def test_what_fastavro_has_written_comes_back(rows) -> None:
    found = decoded(SCHEMA, *(written(SCHEMA, row) for row in rows))
    for row in found:
        row["m"] = dict(row["m"])
    assert found == rows


@given(st.binary(max_size=80) | ROWS.map(lambda row: written(SCHEMA, row)[:-1]))
def test_any_bytes_are_a_value_or_a_misfit(data) -> None:
    with suppress(Misfit):
        decoded(SCHEMA, data)


def test_blocks_may_tell_their_size() -> None:
    """A negative count comes before the size of its block in bytes."""
    assert decoded({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x02\x06\x00") == [
        [1, 2, 3]
    ]
    many = {"type": "map", "values": "boolean"}
    assert decoded(many, b"\x01\x06\x02a\x01\x00") == [[("a", True)]]


@pytest.mark.parametrize(
    ("schema", "data", "said"),
    [
        ("long", b"", "it ends early"),
        ("long", b"\x80" * 9, "it ends early"),
        ("long", b"\x80" * 11, "more than ten bytes"),
        ("long", b"\xff" * 9 + b"\x7f", "more than 64 bits"),
        ("long", b"\x02\x02", "1 bytes are left behind it"),
        ("int", b"\x80\x80\x80\x80\x10", "2147483648 has more than 32 bits"),
        ("boolean", b"\x02", "2 is no boolean"),
        ("double", bytes(7), "it ends early"),
        ("bytes", b"\x01", "a length of -1"),
        ("bytes", b"\x04a", "it ends early"),
        ("string", b"\x02\xff", "no UTF-8"),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab", "it ends early"),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, b"\x02", "1 is no symbol"),
        (["null", "int"], b"\x04", "2 is no branch"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f\x00", "do not fit into 1"),
        (logical("bytes", "decimal", precision=2, scale=0), b"\x02\x64", "more than 2 digits"),
        (logical("long", "timestamp-millis"), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
         "9223372036854775807 ms is too far from 1970"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(schema, data, said) -> None:
    assert said in misfit(schema, data)


def test_places_are_named() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "b", "type": "boolean"}]}
    schema = record(a={"type": "array", "items": inner}, d="double")
    assert misfit(schema, b"\x02\x07\x00" + struct.pack("<d", 1)) == (
        "7 is no boolean - at `$.a.b`"
    )
    assert misfit(schema, b"\x00\x01") == "it ends early - at `$.d`"
