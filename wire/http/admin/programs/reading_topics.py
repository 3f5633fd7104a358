"""`/admin/v2/reading/topics`: where the messages of topics are, and how far they may be read.

A query asks before each of its batches, of ten thousand partitions, too. So with `?version=2` a
plan is a row (`PlanRow`) without names, and those of a topic's partitions come in their order:

    {"logs": {TOPIC: [ROW, ROW, null, ...]}, "partitions": {TOPIC: number}, "missing": [NAME],
     "version": 3}

Without, each plan has its name, and the names of its parts. Older servers know only that form, and
do not look at the version: a program that asks for rows understands both. With `?version=4`, topics
that have too many partitions for one answer are named as `later`, to be asked for again; else they
are an error.

`/admin/v2/reading/names/TENANT/NAMESPACE` tells which topics there are, and how many partitions
each has, 0 for one without: a query by a pattern asks for those that match, and names no partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct

from magnetar.core.broker.broker import Broker
from magnetar.core.broker.kept_rows import PAGE_ROWS
from magnetar.core.broker.row_making import NO_LOG
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.names import TopicName, partition_name
from magnetar.core.ledger.log.planning import encoded_row, plan_of
from magnetar.core.ledger.read.reading_plan import ReadingPlan
from magnetar.wire.http.admin.programs.stored_topics import (
    NAMED_MAX,
    PIECE_SECONDS,
    TOPICS_PER_REST,
    check_number,
    named_topics,
)
from magnetar.wire.http.request import AdminRequest

Json = dict[str, Any]
ROWS: Final = 2
"""The version in which plans are rows."""
BY_PARTITION: Final = 3
"""What is answered to it: ledgers are asked for by partition, too (`reader_ledgers.py`)."""
LATER: Final = 4
"""The version in which some topics may be left for another question."""


class TopicsBody(Struct, frozen=True, forbid_unknown_fields=True):
    topics: list[str] = []
    """Names of topics: of a partitioned one all partitions are meant."""


async def topics(request: AdminRequest) -> Json:
    """A plan for each topic; those that do not exist are named."""
    body = await request.value(TopicsBody) or TopicsBody()
    check_number(len(body.topics), "topics")
    broker = request.broker
    logs: dict[str, int] = {}
    """The partitions of each topic, 0 for one without."""
    later: list[str] = []
    version = request.number("version", 1)
    number = 0
    async for name in Cooperative(map(TopicName.parse, body.topics), TOPICS_PER_REST):
        if name.full in logs:
            continue
        request.check_readable(name)
        count = 0 if name.partitioned else await broker.catalog.partitions(name)
        if later or (version >= LATER and logs and number + (count or 1) > NAMED_MAX):
            later.append(name.full)
            continue
        number += count or 1
        check_number(number, "topics and partitions")
        logs[name.full] = count
    missing: list[str] = []
    partitions = {topic: count for topic, count in logs.items() if count}
    answer: Json = {"partitions": partitions, "missing": missing}
    if version >= ROWS:
        rows = await _rows(broker, logs, missing)
        return answer | {"logs": rows, "later": later, "version": BY_PARTITION}
    return answer | {"topics": await _plans(broker, logs, missing)}


async def names(request: AdminRequest) -> Mapping[str, int]:
    """The partitions of each topic of a namespace that stores its messages, 0 for one without."""
    await request.broker.catalog.policies(request.namespace)
    return await request.broker.topic_counts.of(request.namespace)


async def _rows(broker: Broker, logs: Mapping[str, int], missing: list[str]) -> dict[str, Raw]:
    """The rows of each topic, encoded."""
    pieces: dict[str, list[bytes]] = {topic: [] for topic in logs}
    find = partial(named_topics, broker, missing)
    async for topic, begin, end in Cooperative(_slices(logs), seconds=PIECE_SECONDS):
        if logs[topic]:
            piece = await broker.kept_rows.encoded(topic, begin, end - begin, find)
        else:
            (found,) = await find([topic])
            piece = NO_LOG if found is None else encoded_row(found.ledger)
        pieces[topic].append(piece)
    return {topic: Raw(b"[%b]" % b",".join(each)) for topic, each in pieces.items()}


async def _plans(
    broker: Broker, logs: Mapping[str, int], missing: list[str]
) -> dict[str, ReadingPlan]:
    plans: dict[str, ReadingPlan] = {}
    async for topic, begin, end in Cooperative(_slices(logs)):
        names: Sequence[str] = [topic]
        if logs[topic]:
            names = [partition_name(topic, each) for each in range(begin, end)]
        for name, found in zip(names, await named_topics(broker, missing, names), strict=True):
            if found is not None:
                plans[name] = plan_of(found.ledger)
    return plans


def _slices(logs: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Some partitions of a topic at a time: the first, and the one behind the last."""
    for topic, count in logs.items():
        number = count or 1
        for begin in range(0, number, PAGE_ROWS):
            yield topic, begin, min(begin + PAGE_ROWS, number)
