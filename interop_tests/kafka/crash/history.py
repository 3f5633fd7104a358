"""Judges what producers and consumers noted while the server was stopped, killed and started.

Producers number what they send to each partition, 0, 1, 2, ..., and note under which offset each
was acknowledged. Consumers note what came, and which commits were confirmed, in the order in which
that happened. Of idempotent producers and groups is demanded what Kafka promises:

- what was acknowledged is there, under its offset; nothing is there twice, nothing out of order;
- consumers get everything, in order, and after a restart nothing from before a confirmed commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Stored(NamedTuple):
    """A record: as its producer was told it is stored, or as it was read."""

    partition: int
    offset: int
    number: int


class Committed(NamedTuple):
    """The group goes on here: confirmed."""

    partition: int
    offset: int


def judge_log(acknowledged: Iterable[Stored], found: Iterable[Stored]) -> None:
    """`found` is all that a partition's reader from its beginning gets."""
    results, there = set(acknowledged), list(found)
    lost = sorted(results - set(there))
    assert not lost, f"{len(lost)} acknowledged records are not where they were: {lost[:10]}"
    for partition, records in _by_partition(there).items():
        numbers = [one.number for one in records]
        assert numbers == list(range(len(numbers))), f"{partition}: {_first_crime(numbers)}"


def judge_group(events: Iterable[Stored | Committed], found: Iterable[Stored]) -> None:
    """One member at a time, of one group, read all of `found` from the beginning on."""
    ends: dict[int, int] = defaultdict(int)
    committed: dict[int, int] = defaultdict(int)
    for event in events:
        if isinstance(event, Committed):
            committed[event.partition] = max(event.offset, committed[event.partition])
            continue
        partition, offset, _ = event
        assert offset >= committed[partition], f"{event} came again, committed {committed}"
        assert offset <= ends[partition], f"{event} came, but not what is before: {ends}"
        ends[partition] = max(ends[partition], offset + 1)
    for partition, records in _by_partition(found).items():
        assert ends[partition] == records[-1].offset + 1, f"{partition} was not read to its end"


def judge_notes(notes: Mapping[str, Any]) -> None:
    """What a scene noted in another language: records and commits as lists of their numbers."""
    acknowledged = [Stored(*note) for note in notes["acknowledged"]]
    assert len(acknowledged) == notes["count"], "some were never confirmed"
    found = [Stored(*note) for note in notes["found"]]
    judge_log(acknowledged, found)
    events = [Stored(*note) if len(note) == 3 else Committed(*note) for note in notes["events"]]
    judge_group(events, found)


def _by_partition(records: Iterable[Stored]) -> dict[int, list[Stored]]:
    parted: dict[int, list[Stored]] = defaultdict(list)
    for one in records:
        parted[one.partition].append(one)
    return parted


def _first_crime(numbers: list[int]) -> str:
    at = next(at for at, number in enumerate(numbers) if number != at)
    return f"record {at} is {numbers[at]}, in {numbers[max(0, at - 3) : at + 4]}"
