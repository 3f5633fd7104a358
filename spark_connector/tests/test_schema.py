"""The schema of a DataFrame, as Spark is told it and as it comes back."""

import json

import pyarrow as pa
import pytest
from pyspark.sql import types

from magnetar.spark_connector import options
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.reading.columns import COLUMNS
from magnetar.spark_connector.schema import schema_of, with_schema

BASE = {"service.url": "http://a:1", "topic": "t"}
ROW = types.StructType([types.StructField("a", types.IntegerType())])
AVRO = {
    "valueFormat": "avro",
    "valueSchema": '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}',
}


def told(**given: str) -> str | types.StructType:
    return schema_of(options.table_of(BASE | given))


def chosen(schema: types.StructType, **given: str) -> options.SourceOptions:
    of_table = options.table_of(BASE | given)
    return with_schema(options.parse(BASE | given), schema, of_table, named="columns" in given)


def table(**columns: types.DataType) -> types.StructType:
    return types.StructType([types.StructField(name, kind) for name, kind in columns.items()])


def refused(schema: types.StructType, **given: str) -> str:
    with pytest.raises(OptionError) as raised:
        chosen(schema, **given)
    return str(raised.value)


def test_values_as_they_are_stored() -> None:
    found = told()
    assert found.names == list(COLUMNS)
    assert found["value"].dataType == types.BinaryType()
    assert found["publish_time"].dataType == types.TimestampType()
    back = chosen(found)
    assert (back.columns, back.values.decodes) == (COLUMNS, False)


def test_json_by_words_of_sparks() -> None:
    given = {"valueFormat": "json", "valueSchema": "a INT", "columns": "value,offset"}
    assert told(**given) == "value struct<a INT>, offset bigint"
    parsed = table(value=ROW, offset=types.LongType())
    back = chosen(parsed, **given)
    assert (back.columns, back.values.kind) == (("value", "offset"), pa.struct([("a", pa.int32())]))
    permissive = given | {"mode": "permissive", "columns": "_corrupt_record,value"}
    assert told(**permissive) == "_corrupt_record binary, value struct<a INT>"


@pytest.mark.parametrize("kind", [ROW, types.ArrayType(ROW), types.DecimalType(5, 2)])
def test_json_by_sparks_own_json(kind) -> None:
    text = json.dumps(kind.jsonValue()) if kind is not ROW else ROW.json()
    given = {"valueFormat": "json", "valueSchema": text, "columns": "value"}
    if text.startswith("{"):
        assert told(**given) == table(value=kind)
    assert chosen(table(value=kind), **given).values.decodes


def test_avro_by_its_own_schema() -> None:
    found = told(**AVRO, columns="key,value")
    assert found == table(key=types.BinaryType(), value=ROW)
    back = chosen(found, **AVRO, columns="key,value")
    assert back.values.kind == pa.struct([("a", pa.int32())])


def test_the_users_schema_says_columns_and_values() -> None:
    found = chosen(table(offset=types.LongType(), value=ROW), valueFormat="json")
    assert found.columns == ("offset", "value")
    assert found.values.kind == pa.struct([("a", pa.int32())])


def test_what_does_not_go_together() -> None:
    offset = table(offset=types.IntegerType())
    assert refused(offset) == 'column "offset" is int64, not int32'
    assert refused(table(ofset=types.LongType())).startswith('there is no column "ofset"')
    assert refused(table(value=types.StringType())) == 'column "value" is binary, not string'
    assert "differ" in refused(table(value=types.BinaryType()), columns="key")
    assert "is int32, not int64" in refused(table(value=table(a=types.LongType())), **AVRO).replace(
        "struct<a: int32>", "int32"
    ).replace("struct<a: int64>", "int64")
    not_null = types.StructType([types.StructField("offset", types.LongType(), False)])
    assert refused(not_null) == 'column "offset" is int64, not int64 NOT NULL'
    inside = table(value=types.StructType([types.StructField("a", types.LongType(), False)]))
    assert '"value.a" is NOT NULL' in refused(inside, valueFormat="json")
    lone = table(_corrupt_record=types.BinaryType())
    assert "read both" in refused(lone, valueFormat="json", mode="permissive")


def test_a_schema_that_is_none() -> None:
    with pytest.raises(OptionError, match="is no schema of Spark"):
        told(valueFormat="json", valueSchema='{"type": "x"}')
    arrays = '{"type": "array", "containsNull": true, "elementType": ' * 5_000
    with pytest.raises(OptionError, match="is no schema of Spark"):
        told(valueFormat="json", valueSchema=arrays + '"string"' + "}" * 5_000)
    with pytest.raises(OptionError, match="needs the schema of values"):
        told(valueFormat="json")
    with pytest.raises(OptionError, match='"columnNameOfCorruptRecord" is a column: key'):
        told(valueFormat="string", columnNameOfCorruptRecord="key")
