"""Positions that users give: what each means, and what is said when there is no such thing."""

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.read.reading_plan import EntryPlace, Place
from magnetar.spark_connector import offsets
from magnetar.spark_connector.errors import DataLossError, OptionError
from magnetar.spark_connector.offsets import Time
from magnetar.spark_connector.tests.plans import plan_with

PLAN = plan_with((5, 5), (4, 40), (3, 3), first=100)
"""One message an entry, ten, one: offsets 100 to 104, 105 to 144, 145 to 147."""
TOPIC = TopicName.parse("public/default/t")


def known(said: offsets.Said | Time, *, fails: bool = True) -> Place | int | Time:
    return offsets.known_place(said, "t", PLAN, bound=PLAN.end, latest=PLAN.stable, fails=fails)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("earliest", Place(10, 0, 100)),
        ("latest", Place(12, 3, 148)),
        ("11:2", Place(11, 2, -1)),
        ("11:99", Place(11, 99, -1)),
        ("12:3", Place(12, 3, -1)),
        (148, Place(12, 3, 148)),
        (102, 102),
        (Time(5), Time(5)),
    ],
)
def test_positions(said: offsets.Said | Time, expected: Place | int | Time) -> None:
    assert known(said) == expected


def test_what_has_been_deleted_is_a_loss() -> None:
    with pytest.raises(DataLossError, match="t: 99 is not there any more, the first is"):
        known(99)
    assert known(99, fails=False) == Place(10, 0, 100)
    with pytest.raises(DataLossError, match="t: 9:7 is not there any more"):
        known("9:7")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (149, "no offset 149, only 100 to 148"),
        ("12:4", "t: there is no position 12:4, only 10:0 to 12:3"),
        ("99:0", "no position 99:0, only"),
        (-5, "no offset -5"),
        ("a:b", "no position"),
    ],
)
def test_what_never_was_is_a_mistake(said: str | int, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        known(said)


def test_an_end_within_an_entry_reads_it() -> None:
    found = EntryPlace(11, 2, 120, 130)
    assert offsets.as_start(found, 125) == Place(11, 2, 125)
    assert offsets.as_end(found, 125) == Place(11, 3, 125)
    assert offsets.as_end(found, 120) == Place(11, 2, 120)


def test_positions_by_topic_and_partition() -> None:
    said = '{"t": {"0": 17, "1": "latest"}, "u": "5:0"}'
    option = offsets.parse("startingOffsets", said, "earliest")
    partitions = [option.of(TOPIC.partition(number)) for number in range(3)]
    assert partitions == [17, "latest", "earliest"]
    assert option.of(TopicName.parse("u")) == "5:0"
    assert option.of(TopicName.parse("v")) == "earliest"


def test_a_topic_without_partitions_is_its_partition_0() -> None:
    """So Kafka's clients see it, and so Spark's Kafka source names it."""
    option = offsets.parse("startingOffsets", '{"u": {"0": 17}}', "earliest")
    topic = TopicName.parse("u")
    option.check([topic])
    assert option.of(topic) == 17


@pytest.mark.parametrize(
    ("said", "text"),
    [('{"u": 1}', "/u, which"), ('{"t": {"2": 1}}', "partition 2 of persistent:.*/t, which")],
)
def test_positions_of_what_is_not_read(said: str, text: str) -> None:
    option = offsets.parse("startingOffsets", said, "earliest")
    with pytest.raises(OptionError, match=f"positions are given for .*{text} is not read"):
        option.check([TOPIC.partition(0), TOPIC.partition(1)])


def test_an_end_is_within_what_is_decided() -> None:
    stable = Place(11, 0, 105)
    for said in (120, "11:2", "latest"):
        found = offsets.known_place(said, "t", PLAN, bound=stable, latest=stable, fails=True)
        assert found == stable
    assert offsets.known_place(120, "t", PLAN, bound=PLAN.end, latest=stable, fails=True) == 120


def test_kafkas_numbers_for_both_ends() -> None:
    option = offsets.parse("startingOffsets", '{"t": {"0": -2, "1": -1}}', "earliest")
    assert [option.of(TOPIC.partition(number)) for number in range(2)] == ["earliest", "latest"]


@pytest.mark.parametrize("text", ["newest", "{", '{"t": [1]}', '{"a/b/c/d/e": 1}'])
def test_nonsense_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(OptionError, match='"startingOffsets" is earliest, latest, or positions'):
        offsets.parse("startingOffsets", text, "earliest")


def test_a_topic_is_named_once() -> None:
    with pytest.raises(OptionError, match='"startingOffsets" has a topic twice'):
        offsets.parse("startingOffsets", '{"t": 1, "public/default/t": 2}', "earliest")
