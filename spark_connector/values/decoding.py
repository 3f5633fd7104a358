"""A column of values, decoded: what fits its schema, and what does not. It runs in Spark's workers.

Invariant: each value has its row. One that does not fit is an error, which names the message, or
null with its bytes beside it; a message without value is null, and fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from magnetar.spark_connector.values import (
    arrays,
    avro_decoder,
    avro_schema,
    json_decoder,
    pairs,
    plain_decoder,
)
from magnetar.spark_connector.values.avro_evolution import conversion, same
from magnetar.spark_connector.values.misfit import Misfit
from magnetar.spark_connector.values.options import AVRO, JSON, PAIR, PLAIN, RAW, ValueOptions

if TYPE_CHECKING:
    import pyarrow as pa

Decode = Callable[[bytes], Any]
FRAME_BYTES: Final = 5
MAGIC: Final = 0


class ValueType(Struct, frozen=True):
    """What a task has to know of values."""

    options: ValueOptions = ValueOptions()
    kind: Any = None
    """The type of Arrow's that Spark expects; None for the bytes as they are."""

    @property
    def decodes(self) -> bool:
        return self.options.format != RAW

    @property
    def by_version(self) -> bool:
        """Whether each value is read by the schema that its message names."""
        options = self.options
        avro = any(one.format == AVRO for one in (options, *options.sides))
        return avro and bool(options.by_topic)

    @property
    def by_key(self) -> bool:
        """Whether a part of the value is the key of the message."""
        return self.options.separated


NewVersions = Callable[[str], Mapping[int, str]]
"""Asks for the topic's versions again: it has one more than when the query began. Of a pair, those
of its `key`, or of its `value`; else of "".
"""


def no_new_versions(_: str) -> Mapping[int, str]:
    """Nobody is asked."""
    return {}


class ColumnDecoder(Protocol):
    """Makes columns of values."""

    def decoded(
        self,
        values: Sequence[bytes | None],
        versions: Sequence[int | None] = (),
        keys: Sequence[bytes | None] = (),
    ) -> DecodedValues:
        """The column of these values. `versions` are those of their schemas, and `keys` the keys
        of their messages, if they count.
        """
        ...


def decoder_for(wanted: ValueType, new_versions: NewVersions = no_new_versions) -> ColumnDecoder:
    """What decodes the values of a column."""
    if wanted.options.format == PAIR:
        return PairDecoder(wanted, new_versions)
    return ValueDecoder(wanted, new_versions)


class DecodedValues(Struct):
    """The rows of a column, and why some are not there."""

    column: Any
    """An array of Arrow's."""
    misfits: dict[int, str]
    """Reasons, by the numbers of rows."""


class ValueDecoder:
    """See the module's docstring."""

    def __init__(self, wanted: ValueType, new_versions: NewVersions = no_new_versions) -> None:
        options = wanted.options
        self._versions = _ByVersion(options, new_versions) if wanted.by_version else None
        field_of: arrays.FieldOf = json_decoder.field_of
        if options.format == JSON:
            decode = json_decoder.decoder_of(
                wanted.kind, options.time_zone, only_known=options.only_known
            )
        elif options.format == AVRO:
            decode = avro_decoder.decoder_of(avro_schema.parse(options.schema))
            field_of = avro_decoder.field_of
        elif options.format == PLAIN:
            decode = plain_decoder.decoder_of(options.schema)
        elif options.format == RAW:
            decode = bytes
        else:
            decode = _text
        self._decode: Decode = decode
        if options.framed:
            self._decode = _unframed(decode, options.schema_id)
        self._column = arrays.column_of(wanted.kind, field_of)

    def decoded(
        self,
        values: Sequence[bytes | None],
        versions: Sequence[int | None] = (),
        keys: Sequence[bytes | None] = (),
    ) -> DecodedValues:
        decode, misfits = self._decode, {}
        decode_by = None if self._versions is None else self._versions.decode
        rows: list[Any] = []
        add = rows.append
        for value in values:
            try:
                if value is None:
                    add(None)
                elif decode_by is None or (version := versions[len(rows)]) is None:
                    add(decode(value))
                else:
                    add(decode_by(value, version))
            except Misfit as misfit:
                misfits[len(rows)] = str(misfit)
                add(None)
        return DecodedValues(self._column(rows), misfits)


class PairDecoder:
    """Decodes pairs, each side as a column of its own (`pairs.py`)."""

    def __init__(self, wanted: ValueType, new_versions: NewVersions = no_new_versions) -> None:
        self._separated = wanted.options.separated
        self._sides = [
            ValueDecoder(ValueType(options, field.type), new_versions)
            for options, field in zip(wanted.options.sides, wanted.kind, strict=True)
        ]

    def decoded(
        self,
        values: Sequence[bytes | None],
        versions: Sequence[int | None] = (),
        keys: Sequence[bytes | None] = (),
    ) -> DecodedValues:
        split = pairs.split_apart(keys, values) if self._separated else pairs.split_inline(values)
        columns: list[Any] = []
        given = zip(pairs.SIDES, self._sides, (split.keys, split.values), strict=True)
        for name, decoder, some in given:
            found = decoder.decoded(some, versions)
            columns.append(found.column)
            for number, reason in found.misfits.items():
                split.misfits.setdefault(number, f"the {name} of the pair: {reason}")
        return DecodedValues(pairs.joined(split, columns), split.misfits)


class _ByVersion:
    """Reads values by the versions that wrote them, as values of the latest."""

    def __init__(self, options: ValueOptions, new_versions: NewVersions) -> None:
        self._reader = avro_schema.parse(options.schema)
        self._known = options.versions
        self._side = options.side
        self._new_versions = new_versions
        self._made: dict[int, Decode] = {}

    def decode(self, value: bytes, version: int) -> Any:
        made = self._made.get(version)
        if made is None:
            made = self._made[version] = self._decoder(version)
        return made(value)

    def _decoder(self, version: int) -> Decode:
        if version not in self._known:
            self._known = self._new_versions(self._side)
        if version not in self._known:
            return _unknown(version)
        writer = avro_schema.parse(self._known[version])
        decode = avro_decoder.decoder_of(writer)
        convert = conversion(writer, self._reader)
        return decode if convert is same else lambda value: convert(decode(value))


def _unknown(version: int) -> Decode:
    def decoded(_: bytes) -> Any:
        raise Misfit(f"the topic has no version {version} of its schema any more")

    return decoded


def corrupt_column(values: Sequence[bytes | None], misfits: dict[int, str]) -> pa.Array:
    """The bytes of those that do not fit."""
    import pyarrow as pa

    found = [value if number in misfits else None for number, value in enumerate(values)]
    return pa.array(found, type=pa.binary())


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Misfit(f"it is no UTF-8: {error.reason} at byte {error.start}") from error


def _unframed(decode: Decode, wanted: int) -> Decode:
    """What takes values from behind the number of their schema."""

    def decoded(data: bytes) -> Any:
        if len(data) < FRAME_BYTES or data[0] != MAGIC:
            raise Misfit("it does not begin with 0 and the number of a schema")
        found = int.from_bytes(data[1:FRAME_BYTES], "big")
        if wanted not in (-1, found):
            raise Misfit(f"it has schema {found}, not {wanted}")
        return decode(data[FRAME_BYTES:])

    return decoded
