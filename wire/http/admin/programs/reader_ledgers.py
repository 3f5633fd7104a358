"""`/admin/v2/reading/ledgers`: metadata of ledgers, where their bookies are, and tickets for them.

Bookies know nothing of topics. So who reads a topic's ledgers from them is judged here: he may
consume the topic, and the ledgers are among those that store it now. Then he gets tickets
(`core/ledger/read/tickets.py`), if bookies ask for some. Ledgers that are none of a topic's any
more are missing, as are those that do not exist, so that nobody learns which others there are.

    {"topics": {TOPIC: [ledger, ...]}}  ->
        {"ledgers": {ledger: metadata in base64}, "bookies": {id: address}, "missing": [ledger],
         "tickets": [[[ledger, ...], ticket in base64], ...]}

A query that reads ten thousand partitions names their topic once, and each ledger with the number
of its partition. `topics` (`reading_topics.py`) tells that this is understood here:

    {"partitions": {TOPIC: [[number, ledger], ...]}}

Who accepts MessagePack gets it instead of JSON, with bytes as they are and ledgers as numbers: a
quarter less to encode and to send, of which most of the answer to such a query is.

`"ledgers": [ledger, ...]`, without topics, is for superusers, and for servers that judge nobody.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import trio
from msgspec import Meta, Struct
from starlette.responses import Response

from magnetar.core.broker.kept_rows import PAGE_ROWS
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import NotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.http.admin.programs.stored_topics import (
    PIECE_SECONDS,
    TOPICS_PER_REST,
    check_number,
    named_topics,
)
from magnetar.wire.http.advertised_address import reached_address
from magnetar.wire.http.request import AdminRequest

Json = dict[str, Any]
TICKETS_PER_REST: Final = 25
"""Tickets that are signed before other tasks run, in half a millisecond."""


MESSAGE_PACK: Final = "application/vnd.msgpack"

LedgerId = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
PartitionLedger = tuple[LedgerId, LedgerId]
"""The number of a partition, and a ledger."""


class LedgersBody(Struct, frozen=True, forbid_unknown_fields=True):
    ledgers: list[LedgerId] = []
    topics: dict[str, list[LedgerId]] = {}
    """The ledgers that are wanted of each topic, or partition."""
    partitions: dict[str, list[PartitionLedger]] = {}
    """The same of partitions, by the topic that they are of."""

    @property
    def number(self) -> int:
        """How many ledgers are named."""
        named = sum(map(len, self.topics.values())) + sum(map(len, self.partitions.values()))
        return len(self.ledgers) + named


async def ledgers(request: AdminRequest) -> Json | Response:
    """The metadata of ledgers, as they are stored, in base64, and all bookies' addresses."""
    places = request.options.ledger_places
    bookies = places.bookies() if places is not None else {}
    if places is None or not bookies:
        raise NotFound("no bookie serves readers: start the server with --bookie-port")
    body = await request.exact(LedgersBody) or LedgersBody()
    check_number(body.number, "ledgers")
    if body.ledgers and request.services.access.judge is not None:
        request.check(Action.ALTER, ResourceType.SERVER, "")
    wanted, permitted = list(body.ledgers), list(body.ledgers)
    async for text, ids in Cooperative(body.topics.items(), TOPICS_PER_REST):
        name = TopicName.parse(text)
        request.check_readable(name)
        wanted += ids
        permitted += await _stored_in(request, name, ids)
    for text, named in body.partitions.items():
        wanted += [ledger for _, ledger in named]
        permitted += await _of_partitions(request, TopicName.parse(text), named)
    await trio.lowlevel.checkpoint()  # ten thousand take some milliseconds before, and after
    found = await places.metadata(permitted)
    await trio.lowlevel.checkpoint()
    missing = list(dict.fromkeys([each for each in wanted if each not in found]))
    reached = {name: reached_address(at, request.request) for name, at in bookies.items()}
    answer: Json = {"ledgers": found, "bookies": reached, "missing": missing}
    if (office := request.options.tickets) is not None:
        issued = office.issue(found, request.broker.clock.wall_ms())
        answer["tickets"] = [each async for each in Cooperative(issued, TICKETS_PER_REST)]
    if MESSAGE_PACK in request.request.headers.get("accept", ""):
        return Response(msgspec.msgpack.encode(answer), media_type=MESSAGE_PACK)
    return answer


async def _stored_in(request: AdminRequest, name: TopicName, ids: Iterable[int]) -> set[int]:
    """Those of these ledgers that store the topic."""
    (topic,) = await named_topics(request.broker, [], [name.full])
    if topic is None:
        return set()
    stored: set[int] = set()
    for segment in topic.ledger.chain.segments:
        stored.update((segment.ledger_id, segment.stored_in))
    return stored.intersection(ids)


async def _of_partitions(
    request: AdminRequest, name: TopicName, named: list[PartitionLedger]
) -> list[int]:
    """Those of the ledgers that store the partitions with which they are named."""
    request.check_readable(name)
    broker = request.broker
    count = 0 if name.partitioned else await broker.catalog.partitions(name)
    asked: Sequence[PartitionLedger] = sorted(named)
    find = partial(named_topics, broker, [])
    stored: list[int] = []
    async for begin in Cooperative(range(0, count, PAGE_ROWS), seconds=PIECE_SECONDS):
        end = min(begin + PAGE_ROWS, count)
        some = asked[bisect_left(asked, (begin, -1)) : bisect_left(asked, (end, -1))]
        if some:
            stored += await broker.kept_rows.stored_here(name.full, begin, end - begin, some, find)
    return stored
