"""`/admin/v2/reading`: what programs need that read ledgers from the bookies themselves, as Spark's
workers do.

`topics` tells where the messages of topics are, and how far they may be read, `names` which topics
there are (`reading_topics.py`); `positions` which entry has a message, by its offset or its time;
`ledgers` the metadata of ledgers, the addresses of their bookies, and what is shown to these
(`reader_ledgers.py`). All but `names` are asked by POST, because a request names thousands. Topics
are loaded, as for any reader; else nothing is changed, only `cursors` moves those of such readers
(`reader_cursors.py`). `entries` gives entries to whoever cannot reach the bookies
(`reader_entries.py`).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import Invalid
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.index_lookup import IndexLookup, first_index_at
from magnetar.core.ledger.read.reading_plan import EntryPlace
from magnetar.wire.http.admin.programs.reader_cursors import cursors
from magnetar.wire.http.admin.programs.reader_entries import entries
from magnetar.wire.http.admin.programs.reader_ledgers import ledgers
from magnetar.wire.http.admin.programs.reading_topics import names, topics
from magnetar.wire.http.admin.programs.stored_topics import TOPICS_PER_REST, check_number, log_of
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

Json = dict[str, Any]


class PositionsBody(Struct, frozen=True, forbid_unknown_fields=True):
    offsets: dict[str, int] = {}
    """The message that is looked for in each topic, or partition."""
    times: dict[str, int] = {}
    """The same: the first one that is not older than that, in ms."""
    entries: dict[str, tuple[int, int]] = {}
    """The first entry that is not before that ledger and entry."""


async def positions(request: AdminRequest) -> Json:
    """The entry of one message of each topic; the end where no message is so late."""
    body = await request.value(PositionsBody) or PositionsBody()
    check_number(len(body.offsets) + len(body.times) + len(body.entries), "topics")
    found: dict[str, EntryPlace] = {}
    async for text, offset in Cooperative(body.offsets.items(), TOPICS_PER_REST):
        log = await _log(request, text)
        if not log.first_index <= offset <= log.confirmed_index:
            raise Invalid(
                f"{text} has no offset {offset}, only {log.first_index} to {log.confirmed_index}"
            )
        found[text] = await _place_of(log, offset)
    async for text, since_ms in Cooperative(body.times.items(), TOPICS_PER_REST):
        log = await _log(request, text)
        message = await log.times.first_since(since_ms)
        offset = log.confirmed_index if message is None else message.index
        found[text] = await _place_of(log, offset)
    async for text, (ledger_id, entry_id) in Cooperative(body.entries.items(), TOPICS_PER_REST):
        log = await _log(request, text)
        found[text] = await _entry_at(log, log.chain.normal((ledger_id, entry_id)))
    return {"positions": found}


async def _log(request: AdminRequest, text: str) -> ManagedLedger:
    name = TopicName.parse(text)
    request.check_readable(name)
    return await log_of(request.broker, name)


async def _place_of(log: ManagedLedger, offset: int) -> EntryPlace:
    if offset >= log.confirmed_index:
        return await _entry_at(log, log.chain.after(log.chain.confirmed))
    return await _entry_at(log, await IndexLookup(log).find(offset))


async def _entry_at(log: ManagedLedger, position: Position) -> EntryPlace:
    """An entry that exists, or the end of the log."""
    chain, end = log.chain, log.confirmed_index
    if not chain.has(position):
        return EntryPlace(*position, end, end)
    following = chain.after(position)
    next_index = await first_index_at(log, following) if chain.has(following) else end
    return EntryPlace(*position, await first_index_at(log, position), next_index)


TABLE: Final[Table] = (
    ("GET", "/names/{tenant}/{namespace}", names, Needs.NAMESPACE),
    ("POST", "/topics", topics, Needs.READER),
    ("POST", "/positions", positions, Needs.READER),
    ("POST", "/ledgers", ledgers, Needs.READER),
    ("POST", "/entries", entries, Needs.READER),
    ("POST", "/cursors", cursors, Needs.READER),
)
