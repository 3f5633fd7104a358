"""Decoded values as Arrow arrays: Python's values in, one array of the wanted type out.

A decoder gives for each value of a message what its type says:

    boolean, numbers, text, bytes   as Python has them
    decimal                         its digits without the point: an int
    date                            `datetime.date`, or days since 1970
    timestamp                       `datetime.datetime`, or microseconds since 1970
    struct                          an object whose fields `FieldOf` finds, by their places
    list, map                       `list`, `dict`

and None for what is absent. Columns are made field by field, not row by row: a loop in C for each.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from magnetar.spark_connector.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

FieldOf = Callable[[int], Callable[[Any], Any]]
"""What takes the field of that number from a struct."""
Column = Callable[[Sequence[Any]], "pa.Array"]
"""Makes an array of values, each of which may be None."""


def column_of(kind: pa.DataType, field_of: FieldOf) -> Column:
    """What makes arrays of a type that `check` lets pass."""
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_struct(kind):
        return _structs(kind, field_of)
    if is_a.is_list(kind):
        return _lists(kind, column_of(kind.value_type, field_of))
    if is_a.is_map(kind):
        return _maps(kind, column_of(kind.item_type, field_of))
    if is_a.is_decimal128(kind):
        return lambda values: _decimals(kind, values)
    return lambda values: pa.array(values, type=kind)


def check(kind: pa.DataType, place: str = "value") -> None:
    """Refuse what no value of a message can be."""
    import pyarrow as pa

    if pa.types.is_map(kind) and not pa.types.is_string(kind.key_type):
        raise OptionError(f'"{place}": keys of a map are strings, not {kind.key_type}')
    parts = _parts(kind)
    if not parts and not _is_plain(kind):
        raise OptionError(f'"{place}" is {kind}: no value is decoded as that')
    for field in parts:
        inside = f"{place}.{field.name}"
        if b"variant" in (field.metadata or {}):
            raise OptionError(f'"{place}" is a variant: no value is decoded as one')
        if not field.nullable:
            raise OptionError(f'"{inside}" is NOT NULL: any part of a value can be absent')
        check(field.type, inside)


def _parts(kind: pa.DataType) -> list[pa.Field]:
    """The types inside, but for the keys of a map."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return [kind.item_field]
    return [kind.field(number) for number in range(kind.num_fields)]


def _is_plain(kind: pa.DataType) -> bool:
    import pyarrow as pa

    is_a = pa.types
    return bool(
        is_a.is_boolean(kind)
        or is_a.is_signed_integer(kind)
        or is_a.is_floating(kind)
        or is_a.is_string(kind)
        or is_a.is_binary(kind)
        or is_a.is_decimal128(kind)
        or is_a.is_date32(kind)
        or is_a.is_timestamp(kind)
    )


def _structs(kind: pa.DataType, field_of: FieldOf) -> Column:
    import pyarrow as pa

    fields = list(kind)
    parts = [
        (field_of(number), column_of(field.type, field_of)) for number, field in enumerate(fields)
    ]

    def made(values: Sequence[Any]) -> pa.Array:
        absent = _absent(values)
        rows = values if absent is None else [one for one in values if one is not None]
        children = [column(list(map(take, rows))) for take, column in parts]
        if absent is not None:  # a struct that is absent has a place in each of its columns
            places = pa.array(_places(values), type=pa.int32())
            children = [child.take(places) for child in children]
        return pa.StructArray.from_arrays(children, fields=fields, mask=absent)

    return made


def _lists(kind: pa.DataType, items: Column) -> Column:
    import pyarrow as pa

    def made(values: Sequence[list[Any] | None]) -> pa.Array:
        inside = [item for one in values if one for item in one]
        return pa.ListArray.from_arrays(
            _ends(values), items(inside), type=kind, mask=_absent(values)
        )

    return made


def _maps(kind: pa.DataType, items: Column) -> Column:
    import pyarrow as pa

    def made(values: Sequence[dict[str, Any] | None]) -> pa.Array:
        keys = pa.array([key for one in values if one for key in one], type=kind.key_type)
        inside = items([item for one in values if one for item in one.values()])
        entries = pa.StructArray.from_arrays(
            [keys, inside], fields=[kind.key_field, kind.item_field]
        )
        buffers = [_valid(values), _ends(values).buffers()[1]]
        return pa.Array.from_buffers(kind, len(values), buffers, children=[entries])

    return made


def _decimals(kind: pa.DataType, values: Sequence[int | None]) -> pa.Array:
    """Arrow has a decimal as its digits, in 16 bytes."""
    import pyarrow as pa

    data = b"".join([(one or 0).to_bytes(16, "little", signed=True) for one in values])
    return pa.Array.from_buffers(kind, len(values), [_valid(values), pa.py_buffer(data)])


def _absent(values: Sequence[Any]) -> pa.Array | None:
    """Which of them are; None if all are there."""
    import pyarrow as pa

    flags = [one is None for one in values]
    return pa.array(flags, type=pa.bool_()) if True in flags else None


def _valid(values: Sequence[Any]) -> pa.Buffer | None:
    """Which of them are there, as bits; None if all are."""
    import pyarrow as pa

    flags = [one is not None for one in values]
    return pa.array(flags, type=pa.bool_()).buffers()[1] if False in flags else None


def _places(values: Iterable[Any]) -> list[int | None]:
    """Of those that are there, their numbers."""
    places: list[int | None] = []
    number = 0
    for one in values:
        places.append(None if one is None else number)
        number += one is not None
    return places


def _ends(values: Sequence[Any]) -> pa.Array:
    """Where each of some lists begins, and the last one ends."""
    import pyarrow as pa

    ends = array("i", accumulate((len(one) if one else 0 for one in values), initial=0))
    return pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends)])
