"""What is said of values, and what of it makes no sense."""

import pytest

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.option_values import OptionNames
from magnetar.spark_connector.values import options
from magnetar.spark_connector.values.options import ValueOptions


def parse(**given: str) -> ValueOptions:
    return options.parse(OptionNames(options.NAMES, {}, ()).given(given))


def test_values_are_bytes_unless_it_is_said() -> None:
    assert parse() == ValueOptions()
    assert parse().more_columns == ()


def test_all_that_can_be_said_of_json() -> None:
    found = parse(
        valueFormat="JSON",
        valueSchema=" a INT, b STRING ",
        mode="PERMISSIVE",
        columnNameOfCorruptRecord="bad",
        valueFraming="confluent",
        valueSchemaId="7",
        schemaEvolution="fail",
        timeZone="Europe/Berlin",
    )
    assert found == ValueOptions(
        "json", "a INT, b STRING", True, "bad", True, 7, True, "Europe/Berlin"
    )
    assert found.more_columns == ("bad",)
    assert found.ddl == "struct<a INT, b STRING>"


@pytest.mark.parametrize("text", ["ARRAY<INT>", "map < STRING, INT>", "struct<a: INT>"])
def test_a_schema_may_be_a_type(text) -> None:
    assert parse(valueFormat="json", valueSchema=text).ddl == text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"valueFormat": "xml"}, '"valueFormat" is raw or string or json or avro or auto, not'),
        ({"valueFormat": "auto", "valueSchema": "a INT"}, 'is for "valueFormat" json or avro'),
        ({"valueFormat": "avro"}, '"valueFormat" avro needs "valueSchema"'),
        ({"valueSchema": "a INT"}, '"valueSchema" is for "valueFormat" json or avro'),
        ({"mode": "PERMISSIVE"}, '"mode" is for "valueFormat" string or json or avro'),
        ({"valueFormat": "string", "timeZone": "UTC"}, '"timeZone" is for "valueFormat" json'),
        ({"valueFormat": "json", "mode": "lenient"}, '"mode" is failfast or permissive'),
        ({"valueFormat": "json", "mode": "DROPMALFORMED"}, "say PERMISSIVE"),
        ({"valueFormat": "json", "timeZone": "Nowhere"}, '"timeZone" is a time zone such as'),
        ({"valueFormat": "json", "valueSchemaId": "7"}, 'is for "valueFraming" confluent'),
        ({"valueFormat": "json", "valueFraming": "x"}, '"valueFraming" is none or confluent'),
    ],
)
def test_mistakes_are_told(given, said) -> None:
    with pytest.raises(OptionError) as raised:
        parse(**given)
    assert said in str(raised.value)


def test_json_needs_a_schema_from_somewhere() -> None:
    with pytest.raises(OptionError, match=r'needs the schema of values: "valueSchema", or .schema'):
        _ = parse(valueFormat="json").ddl
