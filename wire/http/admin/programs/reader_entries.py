"""`/admin/v2/reading/entries`: entries as they are stored, for readers that cannot reach bookies.

The answer is bytes: for each entry its id in 8 bytes, its size in 4, and the entry. Entries that
compaction has removed are left out, so `magnetar-next-entry` says where to go on. An entry that
cannot be read ends the answer before it; if it is the first, `magnetar-lost-entry` says why.

An answer has a megabyte of entries, or a single larger one, and is counted against the memory of
all answers (`limits/memory.py`): with too many at a time, some get 503 and are asked for again.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

import trio
from msgspec import Struct
from starlette.responses import Response

from magnetar.core.entry.empty import EMPTY
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, Invalid, LedgerNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.wire.http.admin.programs.stored_topics import stored
from magnetar.wire.http.request import AdminRequest

ANSWER_BYTES: Final = 1024 * 1024
READ_ENTRIES: Final = 1_000
READS_MAX: Final = 200
"""Of one answer: in a compacted ledger, many find nothing."""
NEXT: Final = "magnetar-next-entry"
LOST: Final = "magnetar-lost-entry"
_HEAD: Final = Layout(">qI").pack
_HEAD_BYTES: Final = 12


class EntriesBody(Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    ledger: int
    first: int
    last: int


async def entries(request: AdminRequest) -> Response:
    body = await request.value(EntriesBody)
    if body is None or not 0 <= body.first <= body.last:
        raise Invalid("a topic, a ledger, and its first and last entry are expected")
    name = TopicName.parse(body.topic)
    request.check_readable(name)
    topic = stored(await request.broker.topic(name, create=False))
    if topic.ledger.chain.segment_of(body.ledger) is None:
        raise LedgerNotFound(f"ledger {body.ledger} is none of {topic.name}")
    if (body.ledger, body.last) > topic.ledger.chain.confirmed:
        raise EntryNotFound(f"entry {body.ledger}:{body.last} is not confirmed")
    pieces: list[bytes] = []
    lost = ""
    try:
        following = await _read(topic.ledger, body, pieces)
    except (Corrupted, EntryNotFound, LedgerNotFound) as error:
        following, lost = body.first, str(error).encode("ascii", "replace").decode()
    headers = {NEXT: str(following)} | ({LOST: lost} if lost else {})
    return Response(b"".join(pieces), media_type="application/octet-stream", headers=headers)


async def _read(log: ManagedLedger, body: EntriesBody, pieces: list[bytes]) -> int:
    """Gather entries; returns the first that is not read. Raises only for the first of all."""
    following, room = body.first, ANSWER_BYTES
    for _ in range(READS_MAX):
        if following > body.last or room <= 0:
            break
        wanted = min(body.last - following + 1, READ_ENTRIES)
        try:
            found = await log.read((body.ledger, following), wanted, room)
        except (Corrupted, EntryNotFound, LedgerNotFound):
            if following == body.first:
                raise
            break
        for entry_id, entry in enumerate(found.stored(), following):
            if entry != EMPTY:
                pieces += (_HEAD(entry_id, len(entry)), entry)
                room -= _HEAD_BYTES + len(entry)
        following += len(found.payloads)
        await trio.lowlevel.checkpoint()
    return following
