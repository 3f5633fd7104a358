"""Pairs of key and value, as Pulsar's clients write them, and what is none."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values.decoding import PairDecoder, ValueType, decoder_for
from magnetar.spark_connector.values.misfit import Misfit
from magnetar.spark_connector.values.options import PAIR, ValueOptions
from magnetar.spark_connector.values.pairs import inline_pair
from magnetar.spark_connector.values.topic_schema import SchemaVersion, resolved, with_versions

RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
LATER = {**RECORD, "fields": [*RECORD["fields"], {"name": "b", "type": "int", "default": 5}]}
KIND = pa.struct([("key", pa.string()), ("value", pa.struct([("a", pa.int32())]))])

sides = st.none() | st.binary(max_size=40)


def payload(key: bytes | None, value: bytes | None) -> bytes:
    return b"".join(
        (-1 if side is None else len(side)).to_bytes(4, "big", signed=True) + (side or b"")
        for side in (key, value)
    )


def version(number: int, value: object, kind: str = "AVRO", encoding: str = "INLINE"):
    properties = {
        "key.schema.type": "STRING",
        "value.schema.type": kind,
        "kv.encoding.type": encoding,
    }
    data = json.dumps({"key": "", "value": value})
    return SchemaVersion(number, "KEY_VALUE", data, properties)


def pairs_of(*versions: SchemaVersion) -> ValueOptions:
    return resolved(ValueOptions("auto"), "t", versions)


@given(sides, sides)
def test_a_payload_has_both_sides(key: bytes | None, value: bytes | None) -> None:
    assert inline_pair(payload(key, value)) == (key, value)


@given(sides, sides, st.data())
def test_a_part_of_a_payload_is_none(key: bytes | None, value: bytes | None, data) -> None:
    whole = payload(key, value)
    with pytest.raises(Misfit):
        inline_pair(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(Misfit, match="2 bytes are left behind the pair"):
        inline_pair(whole + b"xx")


@pytest.mark.parametrize("size", [-2, -(1 << 31), (1 << 31) - 1])
def test_a_length_that_cannot_be(size: int) -> None:
    with pytest.raises(Misfit, match=f"its key has {size} bytes, of 0"):
        inline_pair(size.to_bytes(4, "big", signed=True))


def test_inline() -> None:
    options = pairs_of(version(0, RECORD))
    assert (options.format, options.separated) == (PAIR, False)
    given = [payload(b"k", b"\x02"), payload(None, b"\x04"), payload(b"k", None), None]
    found = PairDecoder(ValueType(options, KIND)).decoded(given, [0] * 4)
    assert found.column.to_pylist() == [
        {"key": "k", "value": {"a": 1}},
        {"key": None, "value": {"a": 2}},
        {"key": "k", "value": None},
        None,
    ]
    assert found.column.type == KIND
    assert found.misfits == {}


def test_separated() -> None:
    options = pairs_of(version(0, RECORD, "JSON", "SEPARATED"))
    wanted = ValueType(options, KIND)
    assert (wanted.by_key, wanted.by_version) == (True, False)
    values, keys = [b'{"a": 1}', None, b"{}", None], [b"k", b"", None, None]
    found = decoder_for(wanted).decoded(values, [], keys)
    assert found.column.to_pylist() == [
        {"key": "k", "value": {"a": 1}},
        {"key": "", "value": None},
        {"key": None, "value": {"a": None}},
        None,
    ]


def test_a_pair_does_not_fit_if_one_side_does_not() -> None:
    options = pairs_of(version(0, RECORD))
    given = [payload(b"\xff", b"\x02"), payload(b"k", b"\x80"), b"\0", payload(b"k", b"\x02")]
    found = PairDecoder(ValueType(options, KIND)).decoded(given, [0] * 4)
    assert found.column.to_pylist() == [None, None, None, {"key": "k", "value": {"a": 1}}]
    assert found.misfits == {
        0: "the key of the pair: it is no UTF-8: invalid start byte at byte 0",
        1: "the value of the pair: it ends early - at `$.a`",
        2: "it ends before the length of its key",
    }


def test_a_side_is_read_by_the_version_that_wrote_it() -> None:
    """One that has come since is asked for by its side."""
    first, second = version(0, RECORD), version(1, LATER)
    asked: list[str] = []

    def new_versions(side: str) -> dict[int, str]:
        asked.append(side)
        return {0: json.dumps(RECORD), 1: json.dumps(LATER)}

    wanted = ValueType(pairs_of(first), KIND)
    assert wanted.by_version
    found = PairDecoder(wanted, new_versions).decoded(
        [payload(b"k", b"\x02"), payload(b"k", b"\x04\x06")], [0, 1]
    )
    assert [one["value"] for one in found.column.to_pylist()] == [{"a": 1}, {"a": 2}]
    assert asked == ["value"]
    kept = with_versions(wanted.options, pairs_of(first, second))
    assert kept.sides[1].schema == wanted.options.sides[1].schema
    assert set(kept.sides[1].versions) == {0, 1}


def test_a_side_without_a_definition() -> None:
    schema = SchemaVersion(0, "KEY_VALUE", '{"key": "", "value": ""}', {"key.schema.type": "INT32"})
    options = pairs_of(schema)
    kind = pa.struct([("key", pa.int32()), ("value", pa.binary())])
    found = PairDecoder(ValueType(options, kind)).decoded([payload(b"\0\0\0\x07", b"\xff")])
    assert found.column.to_pylist() == [{"key": 7, "value": b"\xff"}]


def test_what_is_not_read_is_named() -> None:
    with pytest.raises(OptionError, match="reads no values of PROTOBUF_NATIVE, which t has"):
        pairs_of(version(0, {}, "PROTOBUF_NATIVE"))
    with pytest.raises(OptionError, match="t has schemas of KEY_VALUE and of STRING"):
        pairs_of(SchemaVersion(0, "STRING", ""), version(1, RECORD))
    with pytest.raises(OptionError, match="pairs with their keys apart, and others"):
        pairs_of(version(0, RECORD), version(1, RECORD, encoding="SEPARATED"))
    with pytest.raises(OptionError, match="the schema of t has no key"):
        pairs_of(SchemaVersion(0, "KEY_VALUE", "{}"))
