"""Columns of values: each has its row, whether it fits or not."""

import pickle

import pyarrow as pa
import pytest

from magnetar.spark_connector.values.decoding import ValueDecoder, ValueType, corrupt_column
from magnetar.spark_connector.values.options import ValueOptions

JSON = ValueType(ValueOptions("json"), pa.struct([("a", pa.int32())]))
AVRO = ValueType(ValueOptions("avro", '"int"'), pa.int32())


def test_what_does_not_fit_is_null_and_has_a_reason() -> None:
    values = [b'{"a": 1}', None, b'{"a": "x"}', b"{}"]
    found = ValueDecoder(JSON).decoded(values)
    assert found.column.to_pylist() == [{"a": 1}, None, None, {"a": None}]
    assert found.misfits == {2: "Expected `int | null`, got `str` - at `$.a`"}
    assert corrupt_column(values, found.misfits).to_pylist() == [None, None, values[2], None]


def test_text() -> None:
    text = ValueType(ValueOptions("string"), pa.string())
    found = ValueDecoder(text).decoded([b"caf\xc3\xa9", b"", None, b"a\xff"])
    assert found.column.to_pylist() == ["café", "", None, None]
    assert found.misfits == {3: "it is no UTF-8: invalid start byte at byte 1"}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (-1, [3, 3, None, None]),
        (7, [3, None, None, None]),
    ],
)
def test_values_behind_the_number_of_their_schema(wanted, expected) -> None:
    options = ValueOptions("avro", '"int"', framed=True, schema_id=wanted)
    values = [b"\0\0\0\0\x07\x06", b"\0\0\0\1\0\x06", b"\x06", b"\1\0\0\0\x07\x06"]
    found = ValueDecoder(ValueType(options, pa.int32())).decoded(values)
    assert found.column.to_pylist() == expected
    assert found.misfits[2] == "it does not begin with 0 and the number of a schema"
    assert found.misfits.get(1) == (None if wanted == -1 else "it has schema 256, not 7")


def test_a_task_can_carry_it() -> None:
    for one in (JSON, AVRO, ValueType()):
        assert pickle.loads(pickle.dumps(one)) == one
    assert (JSON.decodes, ValueType().decodes) == (True, False)


ONE = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
TWO = ONE.replace("}]", '}, {"name": "b", "type": "int", "default": 5}]')


def test_a_version_that_is_new_is_asked_for_once() -> None:
    asked: list[int] = []

    def new_versions(side: str) -> dict[int, str]:
        assert not side
        asked.append(1)
        return {0: ONE, 1: TWO}

    options = ValueOptions("avro", ONE, by_topic="t", versions={0: ONE})
    kind = pa.struct([("a", pa.int32())])
    decoder = ValueDecoder(ValueType(options, kind), new_versions)
    found = decoder.decoded([b"\x02", b"\x04\x06", b"\x06", None, b"\x08\x08"], [0, 1, None, 1, 1])
    assert [one and one["a"] for one in found.column.to_pylist()] == [1, 2, 3, None, 4]
    assert (len(asked), found.misfits) == (1, {})


def test_a_version_that_is_gone_is_a_misfit() -> None:
    options = ValueOptions("avro", ONE, by_topic="t", versions={0: ONE})
    decoder = ValueDecoder(ValueType(options, pa.struct([("a", pa.int32())])))
    found = decoder.decoded([b"\x02"], [9])
    assert found.misfits == {0: "the topic has no version 9 of its schema any more"}


def test_one_number() -> None:
    decoder = ValueDecoder(ValueType(ValueOptions("plain", "INT16"), pa.int16()))
    found = decoder.decoded([b"\x01\x02", None, b"\x01"])
    assert found.column.to_pylist() == [258, None, None]
    assert list(found.misfits) == [2]
