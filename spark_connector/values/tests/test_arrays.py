"""Arrays of decoded values: as `pyarrow.array` makes them of Python's, only quicker."""

from decimal import localcontext
from operator import itemgetter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values.arrays import check, column_of

KIND = pa.struct(
    [
        ("n", pa.int32()),
        ("l", pa.list_(pa.struct([("s", pa.string()), ("b", pa.bool_())]))),
        ("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
    ]
)
VARIANT = pa.struct([pa.field("metadata", pa.binary(), metadata={"variant": "true"})])
INTS = st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3)
INNER = st.none() | st.tuples(st.none() | st.text(max_size=3), st.none() | st.booleans())
ROWS = st.none() | st.tuples(
    st.none() | st.integers(-5, 5),
    st.none() | st.lists(INNER, max_size=3),
    st.none() | st.dictionaries(st.text(max_size=2), INTS, max_size=3),
)


def plain(row: tuple | None) -> dict | None:
    if row is None:
        return None
    n, inner, m = row
    inside = inner and [one and {"s": one[0], "b": one[1]} for one in inner]
    return {"n": n, "l": inside, "m": None if m is None else list(m.items())}


@given(st.lists(ROWS, max_size=8))
def test_nested_columns(rows) -> None:
    found = column_of(KIND, itemgetter)(rows)
    found.validate(full=True)
    assert found.type == KIND
    assert found.to_pylist() == [plain(row) for row in rows]


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1), max_size=8))
def test_decimals(digits) -> None:
    kind = pa.decimal128(38, 4)
    found = column_of(kind, itemgetter)(digits)
    found.validate(full=True)
    with localcontext(prec=50):
        numbers = [None if one is None else int(one.scaleb(4)) for one in found.to_pylist()]
    assert numbers == digits


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (pa.struct([pa.field("a", pa.int32(), nullable=False)]), '"value.a" is NOT NULL'),
        (pa.list_(pa.field("element", pa.int32(), nullable=False)), '"value.element" is NOT NULL'),
        (pa.struct([("a", pa.duration("us"))]), '"value.a" is duration'),
        (pa.null(), '"value" is null'),
        (pa.struct([]), '"value" is struct<>'),
        (pa.map_(pa.int32(), pa.string()), "keys of a map are strings, not int32"),
        (pa.struct([("v", VARIANT)]), '"value.v" is a variant'),
    ],
)  # fmt: skip
def test_types_that_no_value_has(kind, said) -> None:
    with pytest.raises(OptionError) as raised:
        check(kind)
    assert said in str(raised.value)


def test_types_that_values_have() -> None:
    for kind in (KIND, pa.list_(pa.binary()), pa.decimal128(3, 1), pa.timestamp("us", "UTC")):
        check(kind)
