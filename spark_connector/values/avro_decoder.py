"""Values in Avro's binary encoding, decoded by the schema that they were written with.

A schema is compiled into functions, one for each of its types, that take the bytes and a place in
them and give the value and the place behind it. A record is a tuple of its fields, a union of
several types a tuple of its branches. See `avro_schema.py` for which values become what.

Lengths and counts come from whoever has written the message: each is compared with what is left
before anything is taken or made. Every value takes a byte at least, so a count of items can be. A
place behind the end is an `IndexError`, or a `struct.error` of the numbers of fixed size, which
`decoder_of` catches for all.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

from magnetar.spark_connector.values.avro_schema import AvroType, branches_of, merged
from magnetar.spark_connector.values.misfit import Misfit

Read = Callable[[bytes, int], tuple[Any, int]]
Decode = Callable[[bytes], Any]

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
VARINT_BITS_MAX: Final = 63
"""The shift of the tenth byte of a long, the last one."""
_FLOAT: Final = struct.Struct("<f").unpack_from
_DOUBLE: Final = struct.Struct("<d").unpack_from
_TOO_SHORT: Final = "it ends early"


def decoder_of(schema: AvroType) -> Decode:
    """What decodes values; `Misfit` for those that do not fit."""
    read = reader_of(schema)

    def decoded(data: bytes) -> Any:
        try:
            value, at = read(data, 0)
        except (IndexError, struct.error) as error:
            raise Misfit(_TOO_SHORT) from error
        if at != len(data):
            raise Misfit(f"{len(data) - at} bytes are left behind it")
        return value

    return decoded


field_of: Final = itemgetter
"""What takes a field from a record that was decoded."""


def reader_of(avro: AvroType) -> Read:
    """What reads the values of a type."""
    plain = _MAKERS[avro.kind](avro)
    converted = _CONVERSIONS.get(avro.logical)
    return plain if converted is None else converted(avro, plain)


# -- plain types ----------------------------------------------------------------------------------


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A number of 64 bits, in zigzag and with seven bits a byte."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > VARINT_BITS_MAX:
            raise Misfit("a number has more than ten bytes")
    if number >> 64:
        raise Misfit("a number has more than 64 bits")
    return (number >> 1) ^ -(number & 1), at


def read_int(data: bytes, at: int) -> tuple[int, int]:
    """A number of 32 bits."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, at = read_long(data, at)
    if not -INT_MAX - 1 <= number <= INT_MAX:
        raise Misfit(f"{number} has more than 32 bits")
    return number, at


def read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise Misfit(f"{byte} is no boolean")
    return byte == 1, at + 1


def read_float(data: bytes, at: int) -> tuple[float, int]:
    return _FLOAT(data, at)[0], at + 4


def read_double(data: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE(data, at)[0], at + 8


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes behind their length."""
    size, at = read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise Misfit(_TOO_SHORT if size > 0 else f"a length of {size}")
    return data[at : at + size], at + size


def read_string(data: bytes, at: int) -> tuple[str, int]:
    found, at = read_bytes(data, at)
    try:
        return found.decode(), at
    except UnicodeDecodeError as error:
        raise Misfit(f"a string is no UTF-8: {error}") from error


def read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _fixed(avro: AvroType) -> Read:
    size = avro.size

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if size > len(data) - at:
            raise Misfit(_TOO_SHORT)
        return data[at : at + size], at + size

    return read


def _enum(avro: AvroType) -> Read:
    symbols = avro.names

    def read(data: bytes, at: int) -> tuple[str, int]:
        number, at = read_int(data, at)
        if not 0 <= number < len(symbols):
            raise Misfit(f"{number} is no symbol of an enum of {len(symbols)}")
        return symbols[number], at

    return read


# -- types of other types -------------------------------------------------------------------------


def _record(avro: AvroType) -> Read:
    fields = [reader_of(one) for one in avro.parts]
    names = avro.names

    def read(data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        values: list[Any] = []
        add = values.append
        try:
            for field in fields:
                value, at = field(data, at)
                add(value)
        except Misfit as misfit:
            raise misfit.inside(names[len(values)]) from misfit
        except (IndexError, struct.error) as error:
            raise Misfit(_TOO_SHORT).inside(names[len(values)]) from error
        return tuple(values), at

    return read


def _block(data: bytes, at: int) -> tuple[int, int]:
    """How many items come next; before a negative number of them is their size in bytes."""
    count, at = read_long(data, at)
    if count < 0:
        _, at = read_long(data, at)
        count = -count
    if count > len(data) - at:
        raise Misfit(f"{count} items do not fit into {len(data) - at} bytes")
    return count, at


def _array(avro: AvroType) -> Read:
    item = reader_of(avro.parts[0])

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        values = []
        count, at = _block(data, at)
        while count:
            for _ in range(count):
                value, at = item(data, at)
                values.append(value)
            count, at = _block(data, at)
        return values, at

    return read


def _map(avro: AvroType) -> Read:
    item = reader_of(avro.parts[0])

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        values = {}
        count, at = _block(data, at)
        while count:
            for _ in range(count):
                key, at = read_string(data, at)
                values[key], at = item(data, at)
            count, at = _block(data, at)
        return values, at

    return read


def _union(avro: AvroType) -> Read:
    branches = [reader_of(one) for one in avro.parts]
    several = len(branches_of(avro)) > 1 and not merged(avro)
    if several:
        branches = _members(avro, branches)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        number, at = read_long(data, at)
        if not 0 <= number < len(branches):
            raise Misfit(f"{number} is no branch of a union of {len(branches)}")
        return branches[number](data, at)

    return read


def _members(avro: AvroType, branches: list[Read]) -> list[Read]:
    """The same, with each value at its place in a struct of all branches."""
    made: list[Read] = []
    count, place = len(branches_of(avro)), 0
    for one, read in zip(avro.parts, branches, strict=True):
        if one.kind == "null":
            made.append(read)
        else:
            made.append(_member(read, (None,) * place, (None,) * (count - place - 1)))
            place += 1
    return made


def _member(branch: Read, before: tuple[None, ...], behind: tuple[None, ...]) -> Read:
    def read(data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        value, at = branch(data, at)
        return (*before, value, *behind), at

    return read


# -- logical types --------------------------------------------------------------------------------


def _decimal(avro: AvroType, plain: Read) -> Read:
    most = 10**avro.precision

    def read(data: bytes, at: int) -> tuple[int, int]:
        found, at = plain(data, at)
        digits = int.from_bytes(found, "big", signed=True)
        if not -most < digits < most:
            raise Misfit(f"a decimal has more than {avro.precision} digits")
        return digits, at

    return read


def _millis(_: AvroType, plain: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[int, int]:
        ms, at = plain(data, at)
        if not -LONG_MAX <= ms * 1000 <= LONG_MAX:
            raise Misfit(f"{ms} ms is too far from 1970")
        return ms * 1000, at

    return read


def _uuid(avro: AvroType, plain: Read) -> Read:
    if avro.kind == "string":
        return plain

    def read(data: bytes, at: int) -> tuple[str, int]:
        found, at = plain(data, at)
        return str(uuid.UUID(bytes=found)), at

    return read


_MAKERS: Final[dict[str, Callable[[AvroType], Read]]] = {
    "null": lambda _: read_null,
    "boolean": lambda _: read_boolean,
    "int": lambda _: read_int,
    "long": lambda _: read_long,
    "float": lambda _: read_float,
    "double": lambda _: read_double,
    "bytes": lambda _: read_bytes,
    "string": lambda _: read_string,
    "fixed": _fixed,
    "enum": _enum,
    "record": _record,
    "array": _array,
    "map": _map,
    "union": _union,
}
_CONVERSIONS: Final[dict[str, Callable[[AvroType, Read], Read]]] = {
    "decimal": _decimal,
    "timestamp-millis": _millis,
    "local-timestamp-millis": _millis,
    "uuid": _uuid,
}
