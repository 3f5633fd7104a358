"""The schema of a DataFrame: what Spark is told, and what it says then.

Spark asks for the schema first, and gives it back parsed when it asks for a reader; or gives the
user's, of `.schema(...)`, which says which columns there are and what `value` is. Only Spark parses
its own words for types, so the type of `value` is known then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.options import (
    SourceOptions,
    TableOptions,
    TopicAddress,
    check_columns,
)
from magnetar.spark_connector.reading import columns
from magnetar.spark_connector.service import ReadingService
from magnetar.spark_connector.values import arrays, avro_schema, plain_decoder
from magnetar.spark_connector.values.decoding import ValueType
from magnetar.spark_connector.values.options import (
    AVRO,
    JSON,
    PAIR,
    PLAIN,
    RAW,
    STRING,
    ValueOptions,
)
from magnetar.spark_connector.values.topic_schema import SchemaVersion, resolved, with_versions

if TYPE_CHECKING:
    import pyarrow as pa


def schema_of(table: TableOptions) -> str | StructType:
    """What Spark is told."""
    of_values = of_topic(table)
    if of_values.format == JSON and not of_values.is_json_text:
        return columns.ddl(table.names, {"value": of_values.ddl, of_values.corrupt: "binary"})
    values = ValueType(of_values, _kind_of(of_values))
    return from_arrow_schema(columns.arrow_schema(table.names, values))


def of_topic(table: TableOptions) -> ValueOptions:
    """What values are, as the topic says it if it is to."""
    if table.whose is None:
        return table.values
    return resolved(table.values, table.whose.topic, _versions(table.whose))


def _of_topic_as_told(table: TableOptions, told: pa.Schema) -> ValueOptions:
    """The same when Spark comes back with what it was told: the topic may have a later version by
    then, and the type of the rows is that of the latest before.
    """
    if table.whose is None:
        return table.values
    topic, versions = table.whose.topic, _versions(table.whose)
    latest = resolved(table.values, topic, versions)
    if "value" not in told.names:
        return latest
    for number in range(len(versions), 0, -1):
        older = resolved(table.values, topic, versions[:number])
        if _kind_of(older) == told.field("value").type:
            return with_versions(older, latest)
    return latest


def _versions(whose: TopicAddress) -> Sequence[SchemaVersion]:
    """All that the topic has, the latest at the end."""
    service = ReadingService(whose.service_urls, whose.timeout_seconds, whose.security)
    try:
        return sorted(service.schemas(whose.topic), key=lambda one: one.version)
    finally:
        service.close()


def with_schema(
    chosen: SourceOptions, schema: StructType, table: TableOptions, *, named: bool
) -> SourceOptions:
    """The options of a query, with the columns that Spark has said. `named` tells that the options
    name columns, too.
    """
    found = to_arrow_schema(schema, timezone="UTC")
    if table.whose is not None:
        chosen = replace(chosen, values=ValueType(_of_topic_as_told(table, found)))
    names, of_values = tuple(found.names), chosen.values.options
    check_columns(names, of_values)
    if named and names != chosen.columns:
        raise OptionError(f'"columns" and the schema differ: the schema has {", ".join(names)}')
    if of_values.format == JSON and "value" in names:
        values = ValueType(of_values, found.field("value").type)
        arrays.check(values.kind)
    else:
        values = ValueType(of_values, _kind_of(of_values))
    for wanted in columns.arrow_schema(names, values):
        field = found.field(wanted.name)
        if field != wanted:
            not_null = "" if field.nullable else " NOT NULL"
            raise OptionError(f'column "{field.name}" is {wanted.type}, not {field.type}{not_null}')
    return replace(chosen, columns=names, values=values)


def _kind_of(of_values: ValueOptions) -> pa.DataType | None:
    """The type of values, if Spark is not needed to know it."""
    import pyarrow as pa

    if of_values.format == PAIR:
        return pa.struct(
            [
                (side.side, pa.binary() if side.format == RAW else _kind_of(side))
                for side in of_values.sides
            ]
        )
    if of_values.format == STRING:
        return pa.string()
    if of_values.format == AVRO:
        return avro_schema.arrow_type(avro_schema.parse(of_values.schema))
    if of_values.format == PLAIN:
        return plain_decoder.arrow_type(of_values.schema)
    if of_values.format == JSON and of_values.by_topic:
        plain = avro_schema.without_logical(avro_schema.parse(of_values.schema))
        return avro_schema.arrow_type(plain)
    if of_values.format == JSON and of_values.is_json_text:
        return _parsed(of_values.schema)
    return None


def _kind_of_side(side: ValueOptions) -> pa.DataType:
    import pyarrow as pa

    return pa.binary() if side.format == RAW else _kind_of(side)


def _parsed(text: str) -> pa.DataType:
    """A type in Spark's own JSON."""
    try:
        field = {"name": "value", "type": json.loads(text), "nullable": True, "metadata": {}}
        found = StructType.fromJson({"fields": [field]})
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise OptionError(f'"valueSchema" is no schema of Spark: {error}') from error
    return to_arrow_schema(found, timezone="UTC").field("value").type
