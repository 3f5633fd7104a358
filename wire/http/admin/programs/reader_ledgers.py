"""`/admin/v2/reading/ledgers`: metadata of ledgers, where their bookies are, and tickets for them.

Bookies know nothing of topics. So who reads a topic's ledgers from them is judged here: he may
consume the topic, and the ledgers are among those that store it now. Then he gets tickets
(`core/ledger/read/tickets.py`), if bookies ask for some. Ledgers that are none of a topic's any
more are missing, as are those that do not exist, so that nobody learns which others there are.

    {"topics": {TOPIC: [ledger, ...]}}  ->
        {"ledgers": {ledger: metadata in base64}, "bookies": {id: address}, "missing": [ledger],
         "tickets": [[[ledger, ...], ticket in base64], ...]}

`"ledgers": [ledger, ...]`, without topics, is for superusers, and for servers that judge nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import NotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.http.admin.programs.stored_topics import (
    TOPICS_PER_REST,
    check_number,
    named_topics,
)
from magnetar.wire.http.advertised_address import reached_address
from magnetar.wire.http.request import AdminRequest

Json = dict[str, Any]
TICKETS_PER_REST: Final = 25
"""Tickets that are signed before other tasks run, in half a millisecond."""


class LedgersBody(Struct, frozen=True, forbid_unknown_fields=True):
    ledgers: list[int] = []
    topics: dict[str, list[int]] = {}
    """The ledgers that are wanted of each topic, or partition."""


async def ledgers(request: AdminRequest) -> Json:
    """The metadata of ledgers, as they are stored, in base64, and all bookies' addresses."""
    places = request.options.ledger_places
    bookies = places.bookies() if places is not None else {}
    if places is None or not bookies:
        raise NotFound("no bookie serves readers: start the server with --bookie-port")
    body = await request.value(LedgersBody) or LedgersBody()
    check_number(len(body.ledgers) + sum(map(len, body.topics.values())), "ledgers")
    if body.ledgers and request.services.access.judge is not None:
        request.check(Action.ALTER, ResourceType.SERVER, "")
    wanted = dict.fromkeys(body.ledgers)
    permitted = set(body.ledgers)
    async for text, ids in Cooperative(body.topics.items(), TOPICS_PER_REST):
        name = TopicName.parse(text)
        request.check_readable(name)
        wanted.update(dict.fromkeys(ids))
        permitted |= await _stored_in(request, name, ids)
    found = await places.metadata([each for each in wanted if each in permitted])
    missing = [ledger_id for ledger_id in wanted if ledger_id not in found]
    reached = {name: reached_address(at, request.request) for name, at in bookies.items()}
    answer: Json = {"ledgers": found, "bookies": reached, "missing": missing}
    if (office := request.options.tickets) is not None:
        issued = office.issue(found, request.broker.clock.wall_ms())
        answer["tickets"] = [each async for each in Cooperative(issued, TICKETS_PER_REST)]
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
