"""The schema of a DataFrame: what Spark is told, and what it says then.

Spark asks for the schema first, and gives it back parsed when it asks for a reader; or gives the
user's, of `.schema(...)`, which says which columns there are and what `value` is. Only Spark parses
its own words for types, so the type of `value` is known then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec.structs import replace
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.options import SourceOptions, TableOptions, check_columns
from magnetar.spark_connector.reading import columns
from magnetar.spark_connector.values import arrays, avro_schema
from magnetar.spark_connector.values.decoding import ValueType
from magnetar.spark_connector.values.options import AVRO, JSON, STRING, ValueOptions

if TYPE_CHECKING:
    import pyarrow as pa


def schema_of(table: TableOptions) -> str | StructType:
    """What Spark is told."""
    of_values = table.values
    if of_values.format == JSON and not of_values.is_json_text:
        return columns.ddl(table.names, {"value": of_values.ddl, of_values.corrupt: "binary"})
    values = ValueType(of_values, _kind_of(of_values))
    return from_arrow_schema(columns.arrow_schema(table.names, values))


def with_schema(chosen: SourceOptions, schema: StructType, *, named: bool) -> SourceOptions:
    """The options of a query, with the columns that Spark has said. `named` tells that the options
    name columns, too.
    """
    found = to_arrow_schema(schema, timezone="UTC")
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

    if of_values.format == STRING:
        return pa.string()
    if of_values.format == AVRO:
        return avro_schema.arrow_type(avro_schema.parse(of_values.schema))
    if of_values.format == JSON and of_values.is_json_text:
        return _parsed(of_values.schema)
    return None


def _parsed(text: str) -> pa.DataType:
    """A type in Spark's own JSON."""
    try:
        field = {"name": "value", "type": json.loads(text), "nullable": True, "metadata": {}}
        found = StructType.fromJson({"fields": [field]})
    except (ValueError, LookupError, TypeError) as error:
        raise OptionError(f'"valueSchema" is no schema of Spark: {error}') from error
    return to_arrow_schema(found, timezone="UTC").field("value").type
