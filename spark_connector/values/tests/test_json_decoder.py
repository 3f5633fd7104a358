"""JSON by a type: what fits, what is null, and what a misfit says."""

import datetime
import json
import math
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.spark_connector.values.arrays import column_of
from magnetar.spark_connector.values.json_decoder import decoder_of, field_of, zone_of
from magnetar.spark_connector.values.misfit import Misfit

UTC = datetime.UTC
TIME = pa.timestamp("us", "UTC")


def decoded(kind: pa.DataType, *values: bytes, **options) -> list:
    decode = decoder_of(kind, **options)
    column = column_of(kind, field_of)([decode(value) for value in values])
    column.validate(full=True)
    return column.to_pylist()


def misfit(kind: pa.DataType, value: bytes, **options) -> str:
    with pytest.raises(Misfit) as raised:
        decoder_of(kind, **options)(value)
    return str(raised.value)


def field(kind: pa.DataType, text: str, **options) -> object:
    """One field, alone in its struct."""
    (row,) = decoded(pa.struct([("f", kind)]), b'{"f": %s}' % text.encode(), **options)
    return row["f"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.bool_(), "true", True),
        (pa.int8(), "-128", -128),
        (pa.int32(), "2147483647", 2**31 - 1),
        (pa.int64(), "-9223372036854775808", -(2**63)),
        (pa.float64(), "1", 1.0),
        (pa.float64(), "1.5e3", 1500.0),
        (pa.float32(), "0.5", 0.5),
        (pa.float64(), '"-INF"', -math.inf),
        (pa.decimal128(8, 2), "2.5", Decimal("2.50")),
        (pa.decimal128(8, 2), '"2.505"', Decimal("2.51")),
        (pa.decimal128(8, 2), "-0.005", Decimal("-0.01")),
        (pa.decimal128(38, 2), "123456789012345678901234567890.12",
         Decimal("123456789012345678901234567890.12")),
        (pa.decimal128(8, 2), "1e-400", Decimal("0.00")),
        (pa.string(), '"text"', "text"),
        (pa.string(), '"\\u00e9"', "é"),
        (pa.string(), "17", "17"),
        (pa.string(), '{"a": [1, 2.50, true, null]}', '{"a":[1,2.50,true,null]}'),
        (pa.binary(), '"AAE="', b"\x00\x01"),
        (pa.date32(), '"2026-01-31"', datetime.date(2026, 1, 31)),
        (TIME, '"2026-01-31T12:00:00Z"', datetime.datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (TIME, '"2026-01-31T12:00:00.123456+02:00"',
         datetime.datetime(2026, 1, 31, 10, 0, 0, 123456, tzinfo=UTC)),
        (TIME, '"2026-01-31 12:00:00"', datetime.datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (TIME, '"2026-01-31T12:00"', datetime.datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (TIME, '"2026-01-31"', datetime.datetime(2026, 1, 31, tzinfo=UTC)),
        (TIME, "1700000000", datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (pa.timestamp("us"), '"2026-01-31T12:00:00"', datetime.datetime(2026, 1, 31, 12)),
        (pa.timestamp("us"), '"2026-01-31T12:00"', datetime.datetime(2026, 1, 31, 12)),
        (pa.list_(pa.int32()), "[1, null, 3]", [1, None, 3]),
        (pa.map_(pa.string(), pa.float64()), '{"a": 1, "b": null}', [("a", 1.0), ("b", None)]),
        (pa.struct([("g", pa.list_(pa.struct([("h", pa.bool_())])))]),
         '{"g": [{"h": true}, null, {}]}', {"g": [{"h": True}, None, {"h": None}]}),
    ],
)  # fmt: skip
def test_a_value_of_each_type(kind, text, value) -> None:
    assert field(kind, text) == value
    assert field(kind, "null") is None


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (pa.int8(), "128", "Expected `int` <= 127"),
        (pa.int32(), "1.5", "Expected `int | null`, got `float`"),
        (pa.int64(), "9223372036854775808", "<= 9223372036854775807"),
        (pa.float64(), '"x"', "Expected `float`, got `str`"),
        (pa.decimal128(4, 2), "100", "100 has more than 2 digits"),
        (pa.decimal128(4, 2), "99.999", "99.999 has more than 2 digits"),
        (pa.decimal128(4, 2), "1e999999999", "has more than 2 digits"),
        (pa.decimal128(4, 2), '"x"', "Expected `decimal`, got 'x'"),
        (pa.decimal128(4, 2), "[]", "Expected `decimal`, got `list`"),
        (pa.bool_(), "1", "Expected `bool | null`, got `int`"),
        (pa.binary(), '"%"', "Invalid base64 encoded string"),
        (pa.date32(), '"2026-02-30"', "Invalid RFC3339 encoded date"),
        (TIME, '"noon"', "Expected `datetime`, got 'noon'"),
        (TIME, '"2026-W05-1"', "Expected `datetime`, got '2026-W05-1'"),
        (TIME, '"2026-01-31T25:00"', "hour must be in 0..23"),
        (pa.decimal128(4, 2), '"1_0"', "Expected `decimal`, got '1_0'"),
        (pa.float64(), "1e99999999999999999999", "1e99999999999999999999 is out of range"),
        (pa.string(), "1e99999999999999999999", "1e99999999999999999999 is out of range"),
        (TIME, "true", "Expected `datetime`, got `bool`"),
        (TIME, "10000000000000", "10000000000000 is out of range"),
        (pa.timestamp("us"), '"2026-01-31T12:00:00Z"', "Expected a time without a zone"),
    ],
)
def test_what_does_not_fit_is_named(kind, text, said) -> None:
    found = misfit(pa.struct([("f", kind)]), b'{"f": %s}' % text.encode())
    assert said in found
    assert found.endswith(" - at `$.f`")


def test_places_are_named_inside_and_top_values_too() -> None:
    kind = pa.struct([("a", pa.list_(pa.struct([("b", pa.int32())])))])
    assert misfit(kind, b'{"a": [{"b": 1}, {"b": "x"}]}').endswith("at `$.a[1].b`")
    assert "Expected `object | null`, got `array`" in misfit(kind, b"[]")
    assert "malformed" in misfit(kind, b'{"a": [}')
    assert "trailing characters" in misfit(kind, b"{} {}")
    assert "UTF-8" in misfit(pa.struct([("a", pa.string())]), b'{"a": "\xff"}')
    assert decoded(pa.list_(pa.int32()), b"[1]", b"null") == [[1], None]
    assert decoded(pa.map_(pa.string(), pa.string()), b'{"a": "b"}') == [[("a", "b")]]


def test_absent_fields_are_null_and_empty_values_too() -> None:
    kind = pa.struct([("a", pa.int32()), ("b c", pa.string())])
    found = decoded(kind, b'{"b c": "x", "other": {"deep": []}}', b"{}", b"null", b"", b" \n")
    assert found == [{"a": None, "b c": "x"}, {"a": None, "b c": None}, None, None, None]
    assert decoded(kind, b'{"a": 1, "a": 2}') == [{"a": 2, "b c": None}]


def test_unknown_fields_can_be_misfits() -> None:
    kind = pa.struct([("a", pa.struct([("b", pa.int32())]))])
    assert decoded(kind, b'{"a": {"b": 1, "c": 2}}') == [{"a": {"b": 1}}]
    said = misfit(kind, b'{"a": {"b": 1, "c": 2}}', only_known=True)
    assert said == "Object contains unknown field `c` - at `$.a`"


def test_times_without_a_zone_are_in_the_given_one() -> None:
    expected = datetime.datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert field(TIME, '"2026-07-01T12:00:00"', zone="Europe/Berlin") == expected
    assert field(TIME, '"2026-07-01T12:00:00+02:00"', zone="Europe/Berlin") == expected
    with pytest.raises(ValueError, match="there is no time zone Nowhere/Land"):
        zone_of("Nowhere/Land")


def test_what_is_too_deep_is_a_misfit() -> None:
    kind = pa.struct([("a", pa.int32()), ("s", pa.string())])
    for name in (b"other", b"s"):
        deep = b'{"%s": %s%s}' % (name, b"[" * 100_000, b"]" * 100_000)
        assert misfit(kind, deep)


def test_strings_and_texts_are_one_column() -> None:
    """Rows of the strict type and of the tolerant one."""
    kind = pa.struct([("s", pa.string()), ("t", TIME), ("x", pa.float64())])
    found = decoded(
        kind,
        b'{"s": "a", "t": "2026-01-31T12:00:00Z", "x": 1}',
        b'{"s": 1, "t": 5, "x": "NaN"}',
        b"null",
        b'{"t": "2026-01-31T12:00:00"}',
    )
    noon = datetime.datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert found[0] == {"s": "a", "t": noon, "x": 1.0}
    assert (found[1]["s"], found[1]["t"].second, math.isnan(found[1]["x"])) == ("1", 5, True)
    assert found[2:] == [None, {"s": None, "t": noon, "x": None}]


ROWS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "s": st.none() | st.text(),
        "l": st.none() | st.lists(st.none() | st.booleans(), max_size=3),
        "m": st.none() | st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3)),
        "o": st.none() | st.fixed_dictionaries({}, optional={"d": st.dates().map(str)}),
    },
)
KIND = pa.struct(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("l", pa.list_(pa.bool_())),
        ("m", pa.map_(pa.string(), pa.string())),
        ("o", pa.struct([("d", pa.date32())])),
    ]
)


@given(st.lists(st.none() | ROWS, max_size=5))
def test_what_python_has_written_comes_back(rows) -> None:
    found = decoded(KIND, *(json.dumps(row).encode() for row in rows))
    for row, expected in zip(found, rows, strict=True):
        if expected is None:
            assert row is None
            continue
        row = {name: value for name, value in row.items() if value is not None}
        expected = {name: value for name, value in expected.items() if value is not None}
        if "m" in row:
            row["m"] = dict(row["m"])
        if "o" in row:
            row["o"] = {"d": str(row["o"]["d"])} if row["o"]["d"] else {}
        assert row == expected


ODD = [
    *("1" * 5000, f"1.{'1' * 5000}", "1e999", "1e-999", "1e99999999999999999999", "NaN", "-0"),
    *('"sNaN"', '"NaN"', '"1e99999999999999999999"', f'"{"1" * 5000}"', '""', '" 1 "', '"\\ud800"'),
    *(
        '"0001-01-01T00:00:00+14:00"',
        '"9999-12-31T23:59:60Z"',
        '"0000-01-01"',
        '"2026-01-31T24:00"',
    ),
    *("[1e99999999999999999999]", '{"a": 123456789012345678901234567890}', "-9223372036854775808"),
]


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:24])
def test_odd_values_of_every_type(text) -> None:
    for kind in (*(field.type for field in KIND), TIME, pa.binary(), pa.decimal128(8, 2)):
        for zone in ("UTC", "Europe/Berlin"):
            with suppress(Misfit):
                decode = decoder_of(kind, zone)
                column_of(kind, field_of)([decode(text.encode())]).validate(full=True)


@given(st.binary(max_size=60) | st.text('{}[]":,nl1 .', max_size=40).map(str.encode))
def test_any_bytes_are_a_value_or_a_misfit(data) -> None:
    with suppress(Misfit):
        decoded(KIND, data)
