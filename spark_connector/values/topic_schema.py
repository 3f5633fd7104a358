"""The schema of values as their topic says it (`valueFormat` auto). Pure.

A topic has versions of its schema, and each message the number of the one that it was written with.
Rows have the type of the latest version when the query begins, which Spark fixes then:

    AVRO             read by its own version, then made one of the latest (`avro_evolution.py`)
    JSON             read by the latest: its fields have their names in every message
    STRING           text
    BOOLEAN, INT8 to INT64, FLOAT, DOUBLE, DATE, TIMESTAMP       the value (`plain_decoder.py`)
    BYTES, none      the bytes
    KEY_VALUE        a struct of key and value, each by its own schema as above (`pairs.py`)

Others are refused by name: their values can be read as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values import pairs, plain_decoder
from magnetar.spark_connector.values.options import (
    AVRO,
    JSON,
    PAIR,
    PLAIN,
    RAW,
    STRING,
    ValueOptions,
)

WITHOUT: Final = ("BYTES", "NONE")
KEY_VALUE: Final = "KEY_VALUE"
_FORMATS: Final = {"AVRO": AVRO, "JSON": JSON, "STRING": STRING}
_ENCODING: Final = "kv.encoding.type"
_SEPARATED: Final = "SEPARATED"


class SchemaVersion(Struct, frozen=True):
    """One version, as the server tells it."""

    version: int
    type: str
    data: str
    properties: Mapping[str, str] = {}


def resolved(chosen: ValueOptions, topic: str, versions: Sequence[SchemaVersion]) -> ValueOptions:
    """What values are, by the topic's versions of its schema."""
    latest = max(versions, key=lambda one: one.version, default=None)
    if latest is None or latest.type in WITHOUT:
        if chosen.permissive:
            raise OptionError(f'"mode" says nothing of bytes, and {topic} has no schema')
        return replace(chosen, format=RAW)
    if latest.type == KEY_VALUE:
        return _pair(chosen, topic, versions)
    if latest.type in plain_decoder.KINDS:
        return replace(chosen, format=PLAIN, schema=latest.type)
    if latest.type not in _FORMATS:
        raise OptionError(
            f'"valueFormat" auto reads no values of {latest.type}, which {topic} has: say raw'
        )
    found = replace(chosen, format=_FORMATS[latest.type], by_topic=topic)
    if latest.type == "STRING":
        return found
    return replace(found, schema=latest.data, versions=definitions(topic, latest.type, versions))


def definitions(topic: str, kind: str, versions: Sequence[SchemaVersion]) -> Mapping[int, str]:
    """The versions by number, all of which have to be of one kind."""
    others = [one for one in versions if one.type != kind]
    if others and kind == "AVRO":
        raise OptionError(
            f"{topic} has schemas of {kind} and of {others[0].type}: no one schema reads them all"
        )
    return {one.version: one.data for one in versions} if kind == "AVRO" else {}


# -- pairs ----------------------------------------------------------------------------------------


def _pair(chosen: ValueOptions, topic: str, versions: Sequence[SchemaVersion]) -> ValueOptions:
    encodings = {one.properties.get(_ENCODING, "") == _SEPARATED for one in versions}
    if len(encodings) > 1:
        raise OptionError(f"{topic} has pairs with their keys apart, and others: say raw")
    sides = tuple(
        replace(
            resolved(replace(chosen, permissive=False), topic, of_side(topic, versions, which)),
            side=which,
        )
        for which in pairs.SIDES
    )
    return replace(chosen, format=PAIR, by_topic=topic, sides=sides, separated=encodings == {True})


def of_side(topic: str, versions: Sequence[SchemaVersion], which: str) -> Sequence[SchemaVersion]:
    """The versions of one side of a topic's pairs."""
    return [_half(topic, one, which) for one in versions]


def _half(topic: str, pair: SchemaVersion, which: str) -> SchemaVersion:
    """One side of a version. The server tells its definition as JSON beside the other's, or as ""
    for a kind that needs none, and its kind as a property of the whole.
    """
    if pair.type != KEY_VALUE:
        raise OptionError(
            f"{topic} has schemas of {KEY_VALUE} and of {pair.type}: no one schema reads them all"
        )
    try:
        definition = msgspec.json.decode(pair.data, type=dict[str, msgspec.Raw])[which]
    except (msgspec.MsgspecError, KeyError) as error:
        raise OptionError(f"the schema of {topic} has no {which}: {error}") from error
    kind = pair.properties.get(f"{which}.schema.type", "BYTES")
    return SchemaVersion(pair.version, kind, bytes(definition).decode())


def with_versions(known: ValueOptions, latest: ValueOptions) -> ValueOptions:
    """The same, with the versions that are there now."""
    if known.format != latest.format:
        return known
    sides = tuple(map(with_versions, known.sides, latest.sides))
    return replace(known, versions=latest.versions, sides=sides)
