"""Options: what is needed, what is meant by them, and what is said of mistakes."""

import pytest

from magnetar.spark_connector import options
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.reading.columns import COLUMNS

NEEDED = {"service.url": "http://a:1", "topic": "t"}


def test_two_options_are_needed() -> None:
    found = options.parse(NEEDED)
    assert (found.service_urls, found.topics, found.columns) == (("http://a:1",), ("t",), COLUMNS)
    assert (found.read_committed, found.fail_on_data_loss) == (True, True)
    assert found.max_bytes_per_split == 64 << 20


def test_names_are_in_any_case_and_have_aliases() -> None:
    found = options.parse(
        {"serviceURL": "http://a:1, http://b:2", "SUBSCRIBE": "t, u ,t", "maxbytespersplit": "2MB"}
    )
    assert found.service_urls == ("http://a:1", "http://b:2")
    assert (found.topics, found.max_bytes_per_split) == (("t", "u"), 2 << 20)


def test_a_pattern_has_a_namespace() -> None:
    service = {"service.url": "http://a:1"}
    for text, meant in (
        ("t.*", "public/default/t.*"),
        ("a/b/t", "a/b/t"),
        ("persistent://a/b/t", "a/b/t"),
    ):
        found = options.parse({**service, "topicsPattern": text})
        assert (found.topics, found.topics_pattern) == ((), meant)


def test_a_stream_has_options_and_a_default_of_its_own() -> None:
    rows = {"maxOffsetsPerTrigger": "7", "minOffsetsPerTrigger": "3"}
    found = options.parse({**NEEDED, **rows}, stream=True)
    assert (found.max_rows_per_trigger, found.min_rows_per_trigger) == (7, 3)
    assert found.starting.default == "latest"
    assert options.parse(NEEDED).starting.default == "earliest"
    with pytest.raises(OptionError, match='"endingOffsets" is for a batch query only'):
        options.parse({**NEEDED, "endingOffsets": "latest"}, stream=True)


def test_a_table_that_is_made_has_options_among_its_properties() -> None:
    """As Spark 4.3 gives them for `CREATE TABLE ... USING`."""
    properties = {"provider": "magnetar", "owner": "root", "location": "file:/x", "columns": "key"}
    found = options.table_of(properties | {"option.columns": "key"})
    assert found.names == ("key",)
    with pytest.raises(OptionError, match='no option "provider"'):
        options.parse(NEEDED | properties)


def test_what_spark_adds_is_passed_over() -> None:
    assert options.parse({**NEEDED, "path": "x", "spark.y": "z"}).topics == ("t",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": "t"}, '"service.url" is missing'),
        ({"service.url": "http://a:1"}, 'exactly one of "topic", "topics" and'),
        ({**NEEDED, "topics": "u"}, 'exactly one of "topic", "topics" and'),
        ({**NEEDED, "topics": "u", "subscribe": "v"}, '"topics" is given twice'),
        ({**NEEDED, "startingOffset": "latest"}, 'did you mean "startingOffsets"?'),
        ({**NEEDED, "startingOffsets": "latest", "startingTime": "5"}, "are both given"),
        ({**NEEDED, "maxRowsPerTrigger": "5"}, '"maxRowsPerTrigger" is for a stream only'),
        (
            {**NEEDED, "publishTimeSlackMs": "5"},
            '"publishTimeSlackMs" says something only with "pushdown" = "true"',
        ),
        ({"service.url": "http://a:1", "topicsPattern": "a/b/("}, "( makes no sense"),
        ({**NEEDED, "includeHeaders": "true"}, 'the column "headers" needs none'),
        ({**NEEDED, "kafka.group.id": "g"}, 'followed on the server by "subscription"'),
        ({**NEEDED, "kafka.isolation.levl": "x"}, 'did you mean "isolationLevel"?'),
        ({**NEEDED, "zzz": "1"}, 'there is no option "zzz"'),
        ({**NEEDED, "columns": "key,valu"}, 'there is no column "valu"'),
        ({**NEEDED, "isolationLevel": "dirty"}, '"isolationLevel" is read_committed or'),
        ({**NEEDED, "failOnDataLoss": "no"}, '"failOnDataLoss" is true or false'),
        ({**NEEDED, "minPartitions": "-1"}, '"minPartitions" is a number'),
        ({**NEEDED, "maxBytesPerSplit": "0"}, '"maxBytesPerSplit" is a size such as 64m'),
    ],
)
def test_mistakes_are_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as raised:
        options.parse(given)
    assert said in str(raised.value)
