"""Values in JSON, decoded by a type of Arrow's, as `from_json` does (`JacksonParser` of Spark 4.3).

msgspec decodes and checks in one step, by a Python type that is made from the schema. There are two
such types. The strict one is quick, and takes almost all values: a string is a string. What it
refuses is tried with the tolerant one, which takes what Spark takes besides: any JSON as the text
of a string, "NaN" as a number, numbers and other forms of ISO 8601 as timestamps.

    absent, null        null; an empty value, too
    fields not named    passed over, or refused (`schemaEvolution`)
    a name twice        the last one counts

Invariant: a value that both types take is the same by both.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from magnetar.spark_connector.values.misfit import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

Decode = Callable[[bytes], Any]
_REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TEXT_OF: Final = msgspec.json.Encoder(decimal_format="number").encode
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND: Final = 1_000_000
_NOT_NUMBERS: Final = {
    **dict.fromkeys(("NaN",), float("nan")),
    **dict.fromkeys(("INF", "+INF", "Infinity", "+Infinity"), float("inf")),
    **dict.fromkeys(("-INF", "-Infinity"), float("-inf")),
}
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
"""Of what Python's `Decimal` takes, what Java's `BigDecimal` takes, too."""
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
"""How times begin: Python knows weeks as well, and forms without hyphens."""
_MICROSECONDS_MAX: Final = (1 << 63) - 1
DIGITS_MAX: Final = 1_000
"""Of a decimal: 38 count, and all others are only rounded."""
_CONTEXT: Final = Context(prec=DIGITS_MAX, rounding=ROUND_HALF_UP)


def decoder_of(kind: pa.DataType, zone: str = "UTC", *, only_known: bool = False) -> Decode:
    """What decodes values; `Misfit` for those that do not fit. Times without a zone are in `zone`.
    With `only_known`, a field that the type has not is a misfit.
    """
    strict, tolerant = (
        _decoder(TypeMaker(zone, tolerant=tolerant, only_known=only_known), kind)
        for tolerant in (False, True)
    )

    def decoded(data: bytes) -> Any:
        try:
            return strict(data)
        except _REFUSED:
            if not data.strip():
                return None
        try:
            return tolerant(data)
        except msgspec.DecodeError as error:
            raise Misfit(str(error)) from error
        except UnicodeDecodeError as error:
            raise Misfit(f"a string is no UTF-8: {error.reason}") from error
        except RecursionError as error:
            raise Misfit("it is too deep") from error

    return decoded


def zone_of(name: str) -> datetime.tzinfo:
    """A time zone by its name; `ValueError` if there is none. UTC needs no data of zones."""
    if name == "UTC":
        return datetime.UTC
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError as error:
        raise ValueError(f"there is no time zone {name}") from error


def field_of(number: int) -> Callable[[Any], Any]:
    """What takes a field from a struct that was decoded."""
    return attrgetter(_name(number))


def _name(number: int) -> str:
    return f"f{number}"


def _decoder(maker: TypeMaker, kind: pa.DataType) -> Decode:
    wanted = maker.type_of(kind)
    decoder = msgspec.json.Decoder(wanted, dec_hook=maker.convert, float_hook=_decimal)
    return decoder.decode


class TypeMaker:
    """Makes Python's types of Arrow's, and converts what has a type of ours."""

    def __init__(self, zone: str, *, tolerant: bool, only_known: bool) -> None:
        self._zone = zone_of(zone)
        self._tolerant = tolerant
        self._only_known = only_known
        self._conversions: dict[type, Callable[[Any], Any]] = {}

    def type_of(self, kind: pa.DataType) -> Any:
        """The type of a value that may be null."""
        return self._not_null(kind) | None

    def convert(self, wanted: type, found: Any) -> Any:
        """Msgspec's hook: a value of a type of ours, from one of JSON's."""
        try:
            return wanted(self._conversions[wanted](found))
        except (ArithmeticError, RecursionError) as error:
            raise ValueError(f"{str(found)[:100]} is out of range") from error

    def _not_null(self, kind: pa.DataType) -> Any:
        import pyarrow as pa

        is_a = pa.types
        if is_a.is_struct(kind):
            return self._struct(kind)
        if is_a.is_list(kind):
            return list[self.type_of(kind.value_type)]  # type: ignore[misc]  # made here
        if is_a.is_map(kind):
            return dict[str, self.type_of(kind.item_type)]  # type: ignore[misc]
        if is_a.is_decimal(kind):
            return self._own(int, lambda found: _digits(found, kind.precision, kind.scale))
        if is_a.is_timestamp(kind):
            return self._time(has_zone=kind.tz is not None)
        if is_a.is_floating(kind):
            return self._own(float, _number) if self._tolerant else float
        if is_a.is_string(kind):
            return self._own(str, _text) if self._tolerant else str
        return _plain(kind)

    def _own(self, base: type, conversion: Callable[[Any], Any]) -> type:
        """A type for which msgspec asks `convert`."""
        made = type(f"Own{len(self._conversions)}", (base,), {})
        self._conversions[made] = conversion
        return made

    def _struct(self, kind: pa.DataType) -> type:
        fields = [
            (
                _name(number),
                self.type_of(field.type),
                msgspec.field(name=field.name, default=None),
            )
            for number, field in enumerate(kind)
        ]
        return msgspec.defstruct("Fields", fields, forbid_unknown_fields=self._only_known, gc=False)

    def _time(self, *, has_zone: bool) -> Any:
        if self._tolerant or (has_zone and self._zone is not datetime.UTC):
            read = self._moment if has_zone else _local
            return self._own(int, read)
        return (
            datetime.datetime if has_zone else Annotated[datetime.datetime, msgspec.Meta(tz=False)]
        )

    def _moment(self, found: Any) -> int:
        """Microseconds; numbers are seconds, as Spark has it."""
        if type(found) is int:
            if abs(found) > _MICROSECONDS_MAX // _SECOND:
                raise ValueError(f"{str(found)[:100]} is out of range")
            return found * _SECOND
        time = _iso(found)
        return _microseconds(time if time.tzinfo else time.replace(tzinfo=self._zone))


def _plain(kind: pa.DataType) -> Any:
    """A type that msgspec knows, and takes as Spark does."""
    import pyarrow as pa

    if pa.types.is_integer(kind):
        most = 1 << kind.bit_width - 1
        return Annotated[int, msgspec.Meta(ge=-most, le=most - 1)]
    if pa.types.is_date(kind):
        return datetime.date
    return bool if pa.types.is_boolean(kind) else bytes


def _local(found: Any) -> int:
    time = _iso(found)
    if time.tzinfo:
        raise ValueError("Expected a time without a zone")
    return _microseconds(time.replace(tzinfo=datetime.UTC))


def _iso(found: Any) -> datetime.datetime:
    """A time as msgspec reads it, or Python."""
    if type(found) is not str:
        raise ValueError(f"Expected `datetime`, got {_kind(found)}")
    try:
        time: datetime.datetime = msgspec.convert(found, datetime.datetime)
    except msgspec.ValidationError as error:
        if not _DATE.match(found):
            raise ValueError(f"Expected `datetime`, got {found[:100]!r}") from error
        return datetime.datetime.fromisoformat(found)
    return time


def _microseconds(time: datetime.datetime) -> int:
    since = time - _EPOCH
    return (since.days * 86_400 + since.seconds) * _SECOND + since.microseconds


def _digits(found: Any, precision: int, scale: int) -> int:
    """A decimal without its point, rounded to its scale."""
    if type(found) not in (int, Decimal, str):
        raise ValueError(f"Expected `decimal`, got {_kind(found)}")
    if type(found) is str and not _NUMBER.fullmatch(found):
        raise ValueError(f"Expected `decimal`, got {found[:100]!r}")
    number = _decimal(found)
    digits: int = 10**precision
    if number.is_finite() and (not number or number.adjusted() < precision - scale):
        digits = int(number.scaleb(scale, _CONTEXT).to_integral_value(ROUND_HALF_UP, _CONTEXT))
    if abs(digits) >= 10**precision:
        raise ValueError(f"{str(found)[:100]} has more than {precision - scale} digits")
    return digits


def _decimal(found: str | int | Decimal) -> Decimal:
    """Msgspec's hook for numbers whose type is one of ours, too."""
    try:
        return Decimal(found)
    except InvalidOperation as error:
        raise ValueError(f"{str(found)[:100]} is out of range") from error


def _number(found: Any) -> float:
    if type(found) in (int, Decimal):
        return float(found)
    if type(found) is str and found in _NOT_NUMBERS:
        return _NOT_NUMBERS[found]
    raise ValueError(f"Expected `float`, got {_kind(found)}")


def _text(found: Any) -> str:
    return found if type(found) is str else _TEXT_OF(found).decode()


def _kind(found: Any) -> str:
    return f"`{type(found).__name__.lower()}`"
