"""What values are, by the versions of a topic's schema."""

import pytest

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values.options import AVRO, JSON, PLAIN, RAW, STRING, ValueOptions
from magnetar.spark_connector.values.topic_schema import SchemaVersion, resolved

AUTO = ValueOptions("auto")


def versions(*kinds: str) -> list[SchemaVersion]:
    return [SchemaVersion(number, kind, f'"{number}"') for number, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("kinds", "known"),
    [
        ([], ValueOptions(RAW)),
        (["BYTES"], ValueOptions(RAW)),
        (["STRING"], ValueOptions(STRING, by_topic="t")),
        (["INT32"], ValueOptions(PLAIN, schema="INT32")),
        (["JSON", "JSON"], ValueOptions(JSON, schema='"1"', by_topic="t")),
        (["AVRO", "JSON"], ValueOptions(JSON, schema='"1"', by_topic="t")),
        (
            ["AVRO", "AVRO"],
            ValueOptions(AVRO, schema='"1"', by_topic="t", versions={0: '"0"', 1: '"1"'}),
        ),
    ],
)
def test_the_latest_version_decides(kinds: list[str], known: ValueOptions) -> None:
    assert resolved(AUTO, "t", versions(*kinds)) == known


def test_what_is_not_read_is_named() -> None:
    with pytest.raises(OptionError, match="reads no values of PROTOBUF_NATIVE, which t has"):
        resolved(AUTO, "t", versions("PROTOBUF_NATIVE"))
    with pytest.raises(OptionError, match="t has schemas of AVRO and of JSON"):
        resolved(AUTO, "t", versions("JSON", "AVRO"))
    with pytest.raises(OptionError, match='"mode" says nothing of bytes, and t has no schema'):
        resolved(ValueOptions("auto", permissive=True), "t", [])
