"""A column of values, decoded: what fits its schema, and what does not. It runs in Spark's workers.

Invariant: each value has its row. One that does not fit is an error, which names the message, or
null with its bytes beside it; a message without value is null, and fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.spark_connector.values import (
    arrays,
    avro_decoder,
    avro_schema,
    json_decoder,
    plain_decoder,
)
from magnetar.spark_connector.values.avro_evolution import conversion, same
from magnetar.spark_connector.values.misfit import Misfit
from magnetar.spark_connector.values.options import AVRO, JSON, PLAIN, RAW, ValueOptions

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
        return self.options.format == AVRO and bool(self.options.by_topic)


NewVersions = Callable[[], Mapping[int, str]]
"""Asks for the topic's versions again: it has one more than when the query began."""


class DecodedValues(Struct):
    """The rows of a column, and why some are not there."""

    column: Any
    """An array of Arrow's."""
    misfits: dict[int, str]
    """Reasons, by the numbers of rows."""


class ValueDecoder:
    """See the module's docstring."""

    def __init__(self, wanted: ValueType, new_versions: NewVersions = dict) -> None:
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
        else:
            decode = _text
        self._decode: Decode = decode
        if options.framed:
            self._decode = _unframed(decode, options.schema_id)
        self._column = arrays.column_of(wanted.kind, field_of)

    def decoded(
        self, values: Sequence[bytes | None], versions: Sequence[int | None] = ()
    ) -> DecodedValues:
        """The column of these values; `versions` are those of their schemas, if they count."""
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


class _ByVersion:
    """Reads values by the versions that wrote them, as values of the latest."""

    def __init__(self, options: ValueOptions, new_versions: NewVersions) -> None:
        self._reader = avro_schema.parse(options.schema)
        self._known = options.versions
        self._new_versions = new_versions
        self._made: dict[int, Decode] = {}

    def decode(self, value: bytes, version: int) -> Any:
        made = self._made.get(version)
        if made is None:
            made = self._made[version] = self._decoder(version)
        return made(value)

    def _decoder(self, version: int) -> Decode:
        if version not in self._known:
            self._known = self._new_versions()
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
