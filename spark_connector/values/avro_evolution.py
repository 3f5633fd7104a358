"""Values that were written with one version of an Avro schema, as values of another (Avro 1.12,
"Schema Resolution"). Pure.

The decoder gives Python's values by the schema of the writer (`avro_decoder.py`); `conversion`
makes those of the reader's schema of them:

    fields of a record      by name, or by an alias of the reader's; new ones have their default
    int, long, float        become what is wider
    string and bytes        each other
    enum                    the symbol, if the reader has it; else the reader's default
    one type and a union    the branch that it is, or can become

A value that has no place there is a `Misfit`; schemas of which no value ever has one are an
`OptionError`, which a server that compares schemas does not let come so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import UNSET

from magnetar.core.schema.avro.resolution import PROMOTIONS
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values.avro_schema import AvroType, branches_of, merged
from magnetar.spark_connector.values.misfit import Misfit

Convert = Callable[[Any], Any]


def same(value: Any) -> Any:
    return value


def conversion(writer: AvroType, reader: AvroType) -> Convert:
    """What makes values of the reader's schema; `same` if they are that already."""
    if writer == reader:
        return same
    if writer.kind == "union":
        return _from_union(writer, reader)
    if reader.kind == "union":
        return _into_union(writer, reader)
    if (writer.logical, writer.precision, writer.scale) != (
        reader.logical, reader.precision, reader.scale,
    ):  # fmt: skip
        raise _differ(writer, reader)
    if writer.kind == reader.kind:
        return _CONVERSIONS.get(writer.kind, _plain)(writer, reader)
    return _promotion(writer, reader)


def _differ(writer: AvroType, reader: AvroType) -> OptionError:
    names = [f"{one.kind} {one.logical}".rstrip() for one in (writer, reader)]
    return OptionError(f"Avro reads no {names[0]} as {names[1]}")


def _plain(writer: AvroType, reader: AvroType) -> Convert:
    if writer.size != reader.size:
        raise _differ(writer, reader)
    return same


def _promotion(writer: AvroType, reader: AvroType) -> Convert:
    if writer.logical or reader.kind not in PROMOTIONS.get(writer.kind, ()):
        raise _differ(writer, reader)
    if reader.kind == "bytes":
        return str.encode
    if reader.kind == "string":
        return _text
    return float if reader.kind in ("float", "double") else same


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Misfit(f"bytes are no text: {error.reason}") from error


def _enum(_: AvroType, reader: AvroType) -> Convert:
    symbols, default = frozenset(reader.names), reader.default

    def convert(value: str) -> str:
        if value in symbols:
            return value
        if default is UNSET:
            raise Misfit(f'"{value}" is no symbol of the latest schema')
        return str(default)

    return convert


def _array(writer: AvroType, reader: AvroType) -> Convert:
    item = conversion(writer.parts[0], reader.parts[0])
    return same if item is same else lambda values: [item(one) for one in values]


def _map(writer: AvroType, reader: AvroType) -> Convert:
    item = conversion(writer.parts[0], reader.parts[0])
    if item is same:
        return same
    return lambda values: {key: item(one) for key, one in values.items()}


def _record(writer: AvroType, reader: AvroType) -> Convert:
    """Each field of the reader's: where it is in the writer's record, or what it is else."""
    places = {name: number for number, name in enumerate(writer.names)}
    fields: list[tuple[int, Any]] = []
    for number, name in enumerate(reader.names):
        part, field = reader.parts[number], reader.fields[number]
        found = [places[one] for one in (name, *field.aliases) if one in places]
        if found:
            fields.append((found[0], conversion(writer.parts[found[0]], part)))
        elif field.default is UNSET:
            raise OptionError(f'no writer has the Avro field "{name}", and it has no default')
        else:
            fields.append((-1, default_of(part, field.default)))
    if len(writer.names) == len(fields) and all(
        made is same and at == number for number, (at, made) in enumerate(fields)
    ):
        return same

    def convert(value: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([made if at < 0 else made(value[at]) for at, made in fields])

    return convert


def _from_union(writer: AvroType, reader: AvroType) -> Convert:
    """A decoded union is its value, or a struct of its branches: each goes its own way."""
    nullable = any(one.kind == "null" for one in (reader.parts if reader.kind == "union" else ()))
    branches = branches_of(writer)
    if both := merged(writer):
        branches = (AvroType(both),)
    ways: list[Convert] = []
    for one in branches:
        try:
            ways.append(conversion(one, reader))
        except OptionError as error:  # only values of that branch have no place
            ways.append(_refusal(str(error)))

    def convert(value: Any) -> Any:
        if value is None:
            if not nullable:
                raise Misfit("it is null, which the latest schema has not")
            return None
        if len(ways) == 1:
            return ways[0](value)
        for way, part in zip(ways, value, strict=True):
            if part is not None:
                return way(part)
        return None

    return convert


def _refusal(reason: str) -> Convert:
    def refuse(_: Any) -> Any:
        raise Misfit(reason)

    return refuse


def _into_union(writer: AvroType, reader: AvroType) -> Convert:
    """The branch of the same type and name, or else the first that it can become."""
    branches = branches_of(reader)
    for branch in sorted(branches, key=lambda one: _distance(writer, one)):
        try:
            way = conversion(writer, branch)
        except OptionError:
            continue
        if len(branches) == 1:
            return way
        if both := merged(reader):
            return float if both == "double" else way
        place = branches.index(branch)
        return _member(way, (None,) * place, (None,) * (len(branches) - place - 1))
    raise _differ(writer, reader)


def _distance(writer: AvroType, branch: AvroType) -> int:
    """How unlike two types are, by kind and name."""
    if (branch.kind, branch.logical) != (writer.kind, writer.logical):
        return 3
    if branch.name == writer.name:
        return 0
    short = [one.name.rpartition(".")[2] for one in (branch, writer)]
    return 1 if short[0] == short[1] else 2


def _member(way: Convert, before: tuple[None, ...], behind: tuple[None, ...]) -> Convert:
    return lambda value: (*before, way(value), *behind)


def default_of(avro: AvroType, given: Any) -> Any:
    """A default, which a schema has as JSON, as the decoder would give it."""
    if given is UNSET:
        raise OptionError("the default of an Avro record leaves out a field without one")
    if avro.kind == "union":  # that of its first branch; newer schemas may have any (Avro 1.12)
        branches = branches_of(avro)
        if given is None:
            return None
        if len(branches) == 1 or merged(avro):
            return default_of(branches[0], given)
        return (default_of(branches[0], given), *(None,) * (len(branches) - 1))
    if avro.kind == "record":
        pairs = zip(avro.names, avro.parts, avro.fields, strict=True)
        return tuple(
            default_of(part, given.get(name, field.default)) for name, part, field in pairs
        )
    if avro.kind == "array":
        return [default_of(avro.parts[0], one) for one in given]
    if avro.kind == "map":
        return {key: default_of(avro.parts[0], one) for key, one in given.items()}
    if avro.kind in ("bytes", "fixed"):
        data = given.encode("latin-1")
        return int.from_bytes(data, "big", signed=True) if avro.logical == "decimal" else data
    if avro.logical in ("timestamp-millis", "local-timestamp-millis"):
        return given * 1000
    return float(given) if avro.kind in ("float", "double") else given


_CONVERSIONS: Final[dict[str, Callable[[AvroType, AvroType], Convert]]] = {
    "record": _record,
    "array": _array,
    "map": _map,
    "enum": _enum,
}
