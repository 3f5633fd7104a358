"""The schema of values as their topic says it (`valueFormat` auto). Pure.

A topic has versions of its schema, and each message the number of the one that it was written with.
Rows have the type of the latest version when the query begins, which Spark fixes then:

    AVRO             read by its own version, then made one of the latest (`avro_evolution.py`)
    JSON             read by the latest: its fields have their names in every message
    STRING           text
    BOOLEAN, INT8 to INT64, FLOAT, DOUBLE, DATE, TIMESTAMP       the value (`plain_decoder.py`)
    BYTES, none      the bytes

Others are refused by name: their values can be read as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values import plain_decoder
from magnetar.spark_connector.values.options import (
    AVRO,
    JSON,
    PLAIN,
    RAW,
    STRING,
    ValueOptions,
)

WITHOUT: Final = ("BYTES", "NONE")
_FORMATS: Final = {"AVRO": AVRO, "JSON": JSON, "STRING": STRING}


class SchemaVersion(Struct, frozen=True):
    """One version, as the server tells it."""

    version: int
    type: str
    data: str


def resolved(chosen: ValueOptions, topic: str, versions: Sequence[SchemaVersion]) -> ValueOptions:
    """What values are, by the topic's versions of its schema."""
    latest = max(versions, key=lambda one: one.version, default=None)
    if latest is None or latest.type in WITHOUT:
        if chosen.permissive:
            raise OptionError(f'"mode" says nothing of bytes, and {topic} has no schema')
        return replace(chosen, format=RAW)
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
