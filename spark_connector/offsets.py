"""What users say of where a query begins and ends: positions by name, by offset, by time. Pure.

    startingOffsets, endingOffsets
        earliest, latest
        {"TOPIC": POSITION, "PARTITIONED TOPIC": {"0": POSITION, "1": POSITION}}
    startingTimestamp, endingTimestamp
        milliseconds, of all topics; the first message that is not older, or the end

A position is `earliest`, `latest`, an offset (as Kafka counts, -2 and -1 for these two), or
`"LEDGER:ENTRY"`. It always means the next message to read: what begins there is included at the
start, and excluded at the end. Topics and partitions that are not named have the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.read.reading_plan import EntryPlace, Place, ReadingPlan
from magnetar.spark_connector.errors import DataLossError, OptionError

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
KAFKAS: Final = {-2: EARLIEST, -1: LATEST}
"""`ListOffsetsRequest` of Kafka, and its source for Spark."""
NO_INDEX: Final = -1

Said = str | int


class Time(Struct, frozen=True):
    """The first message that is not older."""

    ms: int


class BoundOption(Struct, frozen=True):
    """Where a query begins, or where it ends."""

    default: str
    topics: Mapping[str, Said | Mapping[int, Said]] = {}
    time: Time | None = None

    def check(self, topics: Iterable[TopicName]) -> None:
        """`OptionError` for a name that means none of the topics, and for the number of a partition
        that there is not: they would be passed over.
        """
        partitions: dict[str, set[int]] = {}
        for topic in topics:
            for name in (topic.full, topic.base.full):
                partitions.setdefault(name, set()).add(max(topic.partition_index, 0))
        if unknown := sorted(self.topics.keys() - partitions.keys()):
            raise OptionError(f"positions are given for {', '.join(unknown)}, which is not read")
        for name, said in self.topics.items():
            if isinstance(said, Mapping) and (others := said.keys() - partitions[name]):
                what = f"partition {min(others)} of {name}"
                raise OptionError(f"positions are given for {what}, which is not read")

    def of(self, topic: TopicName) -> Said | Time:
        """What is said of a topic, or of one partition."""
        if self.time is not None:
            return self.time
        said = self.topics.get(topic.full, self.topics.get(topic.base.full, self.default))
        if isinstance(said, Mapping):
            # a topic without partitions is partition 0 of itself, as Kafka's clients see it
            said = said.get(max(topic.partition_index, 0), self.default)
        return KAFKAS.get(said, said) if isinstance(said, int) else said


def parse(name: str, text: str, default: str) -> BoundOption:
    """The option of that name."""
    if text.lower() in (EARLIEST, LATEST):
        return BoundOption(text.lower())
    try:
        said = msgspec.json.decode(text, type=dict[str, Said | dict[int, Said]])
        topics = {TopicName.parse(topic).full: each for topic, each in said.items()}
    except (msgspec.MsgspecError, InvalidName) as error:
        raise OptionError(
            f'"{name}" is {EARLIEST}, {LATEST}, or positions by topic in JSON: {error}'
        ) from error
    if len(topics) < len(said):
        raise OptionError(f'"{name}" has a topic twice, under two names')
    return BoundOption(default, topics)


def known_place(
    said: Said | Time, topic: str, plan: ReadingPlan, *, bound: Place, latest: Place, fails: bool
) -> Place | int | Time:
    """The place that is meant, at `bound` at most, if the plan tells it; else the offset or the
    time to ask for. What has been deleted is a loss of data if it is asked for; unless `fails`,
    what is left is read.
    """
    if said == EARLIEST:
        return plan.first
    if said == LATEST:
        return latest
    if isinstance(said, Time):
        return said
    if isinstance(said, int) and said < 0:
        raise OptionError(f"{topic}: there is no offset {said}")
    if isinstance(said, str):
        place = _at(said, topic)
        gone = (place.ledger_id, place.entry_id) < (plan.first.ledger_id, plan.first.entry_id)
    else:
        gone = said < plan.first.index
    if gone:
        if fails:
            raise DataLossError(lost(topic, str(said), plan))
        return plan.first
    if isinstance(said, str):
        _check_reached(place, topic, plan)
        return min(place, bound, key=order)
    if said > plan.end.index:
        raise OptionError(
            f"{topic}: there is no offset {said}, only {plan.first.index} to {plan.end.index}"
        )
    return bound if said >= bound.index else said


def lost(topic: str, said: str, plan: ReadingPlan) -> str:
    """What is said when messages have been deleted before they were read."""
    return (
        f"{topic}: {said} is not there any more, the first is offset {plan.first.index} "
        f"({plan.first.ledger_id}:{plan.first.entry_id}); with failOnDataLoss=false the query goes "
        "on there"
    )


def order(place: Place) -> tuple[int, int]:
    """By which places are in the order of the log."""
    return place.ledger_id, place.entry_id


def _at(said: str, topic: str) -> Place:
    ledger, colon, entry = said.partition(":")
    if not (colon and ledger.isdecimal() and entry.isdecimal()):
        raise OptionError(f'{topic}: "{said}" is no position such as earliest, 17 or "5:0"')
    return Place(int(ledger), int(entry), NO_INDEX)


def _check_reached(place: Place, topic: str, plan: ReadingPlan) -> None:
    """`OptionError` for a position behind the end, such as one of another topic."""
    if order(place) <= order(plan.end):
        return
    said, first, end = (
        f"{each.ledger_id}:{each.entry_id}" for each in (place, plan.first, plan.end)
    )
    raise OptionError(f"{topic}: there is no position {said}, only {first} to {end}")


def as_start(found: EntryPlace, offset: int) -> Place:
    """A message in the entry that was found, as the start of what is read."""
    return Place(found.ledger_id, found.entry_id, offset)


def as_end(found: EntryPlace, offset: int) -> Place:
    """The same as the end: an entry with messages before it is read too."""
    return Place(found.ledger_id, found.entry_id + (offset > found.index), offset)
