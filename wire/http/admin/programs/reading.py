"""`/admin/v2/reading`: what programs need that read ledgers from the bookies themselves, as Spark's
workers do.

`topics` tells where the messages of topics are, and how far they may be read; `positions` which
entry has a message, by its offset or its time; `ledgers` the metadata of ledgers, and the addresses
of their bookies. All are asked by POST, because a request names thousands. Nothing is changed, and
nobody is fenced; only `cursors` moves those of such readers (`reader_cursors.py`). `entries` gives
entries to whoever cannot reach the bookies (`reader_entries.py`).
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Final

from msgspec import Struct

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import Invalid, NotFound, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.log.planning import plan_of
from magnetar.core.ledger.read.index_lookup import IndexLookup, first_index_at
from magnetar.core.ledger.read.reading_plan import EntryPlace, ReadingPlan
from magnetar.wire.http.admin.programs.reader_cursors import cursors
from magnetar.wire.http.admin.programs.reader_entries import entries
from magnetar.wire.http.admin.programs.stored_topics import stored
from magnetar.wire.http.advertised_address import reached_address
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.routes import Table

Json = dict[str, Any]
LEDGERS_MAX: Final = 10_000
"""Of one request; as many topics, partitions counted, too."""
TOPICS_PER_REST: Final = 250
"""Topics that are looked up before other tasks run, at the most."""


class TopicsBody(Struct, frozen=True, forbid_unknown_fields=True):
    topics: list[str] = []
    """Names of topics: of a partitioned one all partitions are meant."""


class PositionsBody(Struct, frozen=True, forbid_unknown_fields=True):
    offsets: dict[str, int] = {}
    """The message that is looked for in each topic, or partition."""
    times: dict[str, int] = {}
    """The same: the first one that is not older than that, in ms."""


class LedgersBody(Struct, frozen=True, forbid_unknown_fields=True):
    ledgers: list[int] = []


async def topics(request: AdminRequest) -> Json:
    """A plan for each topic; those that do not exist are named."""
    body = await request.value(TopicsBody) or TopicsBody()
    _check_number(body.topics, "topics")
    broker = request.broker
    partitions: dict[str, int] = {}
    logs: dict[str, TopicName] = {}
    async for name in Cooperative(map(TopicName.parse, body.topics), TOPICS_PER_REST):
        count = 0 if name.partitioned else await broker.catalog.partitions(name)
        if count:
            partitions[name.full] = count
        logs |= {each.full: each for each in [name.partition(i) for i in range(count)] or [name]}
        _check_number(logs, "topics and partitions")
    plans: dict[str, ReadingPlan] = {}
    missing = []
    wanted = list(logs.values())
    async for begin in Cooperative(range(0, len(wanted), TOPICS_PER_REST), 1):
        for one in wanted[begin : begin + TOPICS_PER_REST]:
            try:
                plans[one.full] = plan_of(await _log(broker, one))
            except TopicNotFound:
                missing.append(one.full)
    return {"topics": plans, "partitions": partitions, "missing": missing}


async def _log(broker: Broker, name: TopicName) -> ManagedLedger:
    return stored(await broker.topic(name, create=False)).ledger


async def positions(request: AdminRequest) -> Json:
    """The entry of one message of each topic; the end where no message is so late."""
    body = await request.value(PositionsBody) or PositionsBody()
    _check_number([*body.offsets, *body.times], "topics")
    found: dict[str, EntryPlace] = {}
    async for text, offset in Cooperative(body.offsets.items(), TOPICS_PER_REST):
        log = await _log(request.broker, TopicName.parse(text))
        if not log.first_index <= offset <= log.confirmed_index:
            raise Invalid(
                f"{text} has no offset {offset}, only {log.first_index} to {log.confirmed_index}"
            )
        found[text] = await _place_of(log, offset)
    async for text, since_ms in Cooperative(body.times.items(), TOPICS_PER_REST):
        log = await _log(request.broker, TopicName.parse(text))
        message = await log.times.first_since(since_ms)
        offset = log.confirmed_index if message is None else message.index
        found[text] = await _place_of(log, offset)
    return {"positions": found}


async def _place_of(log: ManagedLedger, offset: int) -> EntryPlace:
    chain, end = log.chain, log.confirmed_index
    if offset >= end:
        return EntryPlace(*chain.after(chain.confirmed), end, end)
    position = await IndexLookup(log).find(offset)
    following = chain.after(position)
    next_index = await first_index_at(log, following) if chain.has(following) else end
    return EntryPlace(*position, await first_index_at(log, position), next_index)


async def ledgers(request: AdminRequest) -> Json:
    """The metadata of ledgers, as they are stored, in base64, and all bookies' addresses."""
    places = request.options.ledger_places
    bookies = places.bookies() if places is not None else {}
    if places is None or not bookies:
        raise NotFound("no bookie serves readers: start the server with --bookie-port")
    body = await request.value(LedgersBody)
    ids = body.ledgers if body is not None else []
    _check_number(ids, "ledgers")
    found = await places.metadata(ids)
    missing = [ledger_id for ledger_id in ids if ledger_id not in found]
    reached = {name: reached_address(at, request.request) for name, at in bookies.items()}
    return {"ledgers": found, "bookies": reached, "missing": missing}


def _check_number(named: Sized, what: str) -> None:
    if len(named) > LEDGERS_MAX:
        raise Invalid(f"more than {LEDGERS_MAX} {what}")


TABLE: Final[Table] = (
    ("POST", "/topics", topics),
    ("POST", "/positions", positions),
    ("POST", "/ledgers", ledgers),
    ("POST", "/entries", entries),
    ("POST", "/cursors", cursors),
)
