"""`/admin/v2/reading/topics`: where the messages of topics are, and how far they may be read.

A query asks before each of its batches, of ten thousand partitions, too. So with `?version=2` a
plan is a row (`PlanRow`) without names, and those of a topic's partitions come in their order:

    {"logs": {TOPIC: [ROW, ROW, null, ...]}, "partitions": {TOPIC: number}, "missing": [NAME]}

Without, each plan has its name, and the names of its parts. Older servers know only that form, and
do not look at the version: a program that asks for rows understands both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import TopicNotFound
from magnetar.core.kernel.names import TopicName, partition_name
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.log.planning import plan_of, row_of
from magnetar.core.ledger.read.reading_plan import ReadingPlan
from magnetar.wire.http.admin.programs.stored_topics import (
    TOPICS_PER_REST,
    check_number,
    log_of,
    stored,
)
from magnetar.wire.http.request import AdminRequest

Json = dict[str, Any]
ROWS: Final = 2
"""The version in which plans are rows."""


class TopicsBody(Struct, frozen=True, forbid_unknown_fields=True):
    topics: list[str] = []
    """Names of topics: of a partitioned one all partitions are meant."""


async def topics(request: AdminRequest) -> Json:
    """A plan for each topic; those that do not exist are named."""
    body = await request.value(TopicsBody) or TopicsBody()
    check_number(len(body.topics), "topics")
    broker = request.broker
    partitions: dict[str, int] = {}
    logs: dict[str, list[str]] = {}
    number = 0
    async for name in Cooperative(map(TopicName.parse, body.topics), TOPICS_PER_REST):
        if name.full in logs:
            continue
        count = 0 if name.partitioned else await broker.catalog.partitions(name)
        if count:
            partitions[name.full] = count
        number += count or 1
        check_number(number, "topics and partitions")
        logs[name.full] = [partition_name(name.full, i) for i in range(count)] or [name.full]
    missing: list[str] = []
    answer: Json = {"partitions": partitions, "missing": missing}
    if request.number("version", 1) >= ROWS:
        return answer | {"logs": await _rows(broker, logs, missing)}
    return answer | {"topics": await _plans(broker, logs, missing)}


async def _rows(
    broker: Broker, logs: Mapping[str, Sequence[str]], missing: list[str]
) -> dict[str, Raw]:
    """The rows of each topic, encoded piece by piece, so that there are never many of them."""
    pieces: dict[str, list[bytes]] = {topic: [] for topic in logs}
    async for topic, names in Cooperative(_slices(logs)):
        found = await _found(broker, names, missing)
        rows = [None if log is None else row_of(log) for log in found]
        pieces[topic].append(msgspec.json.encode(rows)[1:-1])
    return {topic: Raw(b"[%b]" % b",".join(each)) for topic, each in pieces.items()}


async def _plans(
    broker: Broker, logs: Mapping[str, Sequence[str]], missing: list[str]
) -> dict[str, ReadingPlan]:
    plans: dict[str, ReadingPlan] = {}
    async for _, names in Cooperative(_slices(logs)):
        for name, log in zip(names, await _found(broker, names, missing), strict=True):
            if log is not None:
                plans[name] = plan_of(log)
    return plans


def _slices(logs: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Some logs of a topic at a time."""
    for topic, names in logs.items():
        for begin in range(0, len(names), TOPICS_PER_REST):
            yield topic, names[begin : begin + TOPICS_PER_REST]


async def _found(
    broker: Broker, names: Sequence[str], missing: list[str]
) -> list[ManagedLedger | None]:
    """The logs of topics; None for one that does not exist. Most are loaded, and nothing waits."""
    found: list[ManagedLedger | None] = []
    loaded = broker.topics
    for name in names:
        topic = loaded.get(name)
        if topic is not None and not topic.fenced:
            found.append(stored(topic).ledger)
            continue
        try:
            found.append(await log_of(broker, TopicName.parse(name)))
        except TopicNotFound:
            missing.append(name)
            found.append(None)
    return found
