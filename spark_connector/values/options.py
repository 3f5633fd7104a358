"""The options that say what the column `value` is. Pure.

Names of those that Spark's `from_json` and `from_avro` have are theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.option_values import OptionValues
from magnetar.spark_connector.values.json_decoder import zone_of

RAW, STRING, JSON, AVRO, AUTO = "raw", "string", "json", "avro", "auto"
FORMATS: Final = (RAW, STRING, JSON, AVRO, AUTO)
"""`auto` is one of the others, PLAIN or PAIR, once the topic has been asked (`topic_schema.py`)."""
PLAIN: Final = "plain"
"""One number, truth or time."""
PAIR: Final = "pair"
"""Key and value in one (`pairs.py`)."""
FAILFAST: Final = "failfast"
MODES: Final = (FAILFAST, "permissive")
CONFLUENT: Final = "confluent"
CORRUPT: Final = "_corrupt_record"
NAMES: Final = (
    "valueFormat", "valueSchema", "valueFraming", "valueSchemaId", "schemaEvolution", "mode",
    "columnNameOfCorruptRecord", "timeZone",
)  # fmt: skip
NEEDED: Final = {
    "valueschema": (JSON, AVRO),
    "valueframing": (JSON, AVRO),
    "valueschemaid": (JSON, AVRO),
    "schemaevolution": (JSON, AUTO),
    "timezone": (JSON, AUTO),
    "mode": (STRING, JSON, AVRO, AUTO),
    "columnnameofcorruptrecord": (STRING, JSON, AVRO, AUTO),
}
"""What options are for, by their names in lower case."""
_SPELLED: Final = {name.lower(): name for name in NAMES}
_TYPE: Final = re.compile(r"\s*(struct|array|map)\s*<", re.IGNORECASE)


class ValueOptions(Struct, frozen=True):
    """See the module's docstring."""

    format: str = RAW
    schema: str = ""
    """As it was given: columns or a type for JSON, Avro's own for Avro."""
    permissive: bool = False
    """Whether a value that does not fit is null, and not an error."""
    corrupt: str = CORRUPT
    """The column that has the bytes of such values."""
    framed: bool = False
    """Whether each value is behind five bytes: 0, and the number of its schema (Confluent's)."""
    schema_id: int = -1
    """The only number that fits; -1 for any."""
    only_known: bool = False
    """Whether a field that the schema has not is an error."""
    time_zone: str = "UTC"
    """Of times without one."""
    by_topic: str = ""
    """The topic that has said what the schema is."""
    versions: Mapping[int, str] = {}
    """Its schemas of Avro by their numbers: a message is read by its own."""
    sides: tuple[ValueOptions, ...] = ()
    """Of a pair: how its key and its value are read."""
    side: str = ""
    """Of a side: which it is."""
    separated: bool = False
    """Of a pair: whether its key is the message's."""

    @property
    def ddl(self) -> str:
        """The type of JSON's values as Spark reads it."""
        if not self.schema:
            raise OptionError(
                '"valueFormat" json needs the schema of values: "valueSchema", or .schema(...)'
            )
        return self.schema if _TYPE.match(self.schema) else f"struct<{self.schema}>"

    @property
    def more_columns(self) -> tuple[str, ...]:
        """Columns that there are besides."""
        return (self.corrupt,) if self.permissive else ()

    @property
    def is_json_text(self) -> bool:
        """Whether the schema is Spark's own JSON (`StructType.json()`)."""
        return self.schema.lstrip().startswith("{")


def parse(values: OptionValues) -> ValueOptions:
    """What is said of values; `OptionError` says what is wrong with it."""
    chosen = values.text("valueformat", RAW).lower()
    values.choice("valueformat", FORMATS)
    for name, formats in NEEDED.items():
        if name in values and chosen not in formats:
            raise OptionError(f'"{_SPELLED[name]}" is for "valueFormat" {" or ".join(formats)}')
    if chosen == AVRO and not values.text("valueschema"):
        raise OptionError('"valueFormat" avro needs "valueSchema": the schema that writers have')
    if values.text("mode").lower() == "dropmalformed":
        raise OptionError(
            '"mode" DROPMALFORMED would leave messages out without a word: say PERMISSIVE, and '
            f"filter by {CORRUPT} IS NULL"
        )
    framed = values.choice("valueframing", ("none", CONFLUENT)) == CONFLUENT
    if "valueschemaid" in values and not framed:
        raise OptionError(f'"valueSchemaId" is for "valueFraming" {CONFLUENT}')
    return ValueOptions(
        format=chosen,
        schema=values.text("valueschema").strip(),
        permissive=values.choice("mode", MODES) != FAILFAST,
        corrupt=values.text("columnnameofcorruptrecord", CORRUPT),
        framed=framed,
        schema_id=values.number("valueschemaid", 0) if "valueschemaid" in values else -1,
        only_known=values.choice("schemaevolution", ("ignore", "fail")) == "fail",
        time_zone=_zone(values),
    )


def _zone(values: OptionValues) -> str:
    name = values.text("timezone", "UTC")
    try:
        zone_of(name)
    except ValueError as error:
        raise values.wrong("timezone", "a time zone such as Europe/Berlin") from error
    return name
