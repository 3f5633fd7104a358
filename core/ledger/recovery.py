"""Opening a log again: read its list of ledgers and learn where it ends.

What its last writer left unsealed is sealed here, which also fences that writer out; ledgers that
are empty or gone leave the list. Nothing is written to the list and no ledger is deleted: whoever
asked does both, in that order.

Invariant: the answer names every entry that was ever confirmed, and an index above all of theirs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.entry import header
from core.errors import LedgerNotFound
from core.ledger import formats
from core.ledger.chain import START, Position, Segment
from core.ledger.trouble import said
from core.ports.metadata_store import Versioned

if TYPE_CHECKING:
    from core.ledger.storage import Storage

log = logging.getLogger(__name__)

NEXT_INDEX: Final = "magnetar.next-index"
"""Property of the whole log: the index its next entry gets, kept when ledgers are trimmed."""
FIRST_INDEX: Final = "magnetar.first-index"
"""Property of one ledger: the index of its first message."""


class Found(Struct, frozen=True):
    """What is known of a log that was opened again."""

    segments: list[Segment]
    confirmed: Position
    properties: dict[str, str]
    next_index: int
    terminated: Position | None
    doomed: list[int]
    """Ledgers to delete once the list no longer names them."""
    changed: bool
    """Whether the list is to be written."""


async def find(storage: Storage, name: str, stored: Versioned) -> Found:
    """Take a log up where its last owner left it."""
    info = formats.decode_managed_ledger(stored.value)
    listed: list[Segment] = []
    index = 0
    for ledger in info.ledgers:
        index = int(ledger.properties.get(FIRST_INDEX, index))
        listed.append(
            Segment(
                ledger_id=ledger.ledger_id,
                first_index=index,
                entries=ledger.entries,
                size=ledger.size,
                closed_ms=ledger.closed_ms,
                others=ledger.properties,
                offload=ledger.offload_context,
            )
        )
        index += ledger.entries
    unsealed = [segment for segment in listed if not segment.closed_ms]
    for segment in unsealed:
        await seal(storage, name, segment)
    if listed and listed[-1] not in unsealed:
        await _check_there(storage, name, listed[-1])
    segments = [segment for segment in listed if segment.entries]
    properties = dict(info.properties)
    next_index = int(properties.get(NEXT_INDEX, index))
    confirmed = START
    if segments:
        last = segments[-1]
        confirmed = (last.ledger_id, last.entries - 1)
        next_index = max(next_index, last.first_index)
        if last in unsealed or NEXT_INDEX not in properties:
            next_index = max(next_index, await _index_at(storage, confirmed) + 1)
    return Found(
        segments=segments,
        confirmed=confirmed,
        properties=properties,
        next_index=next_index,
        terminated=info.terminated,
        doomed=[segment.ledger_id for segment in listed if not segment.entries],
        changed=bool(unsealed) or len(segments) != len(listed),
    )


async def seal(storage: Storage, name: str, segment: Segment) -> None:
    """End a ledger whose writer is no more; from then on `segment` says what storage says."""
    try:
        reader = await storage.ledgers.open(segment.ledger_id, recover=True)
        info = await storage.ledgers.info(segment.ledger_id)
    except LedgerNotFound:
        # its writer named it in the list, and was gone before or after it was created
        log.warning("%s: ledger %d is listed but not there", said(name), segment.ledger_id)
        segment.entries = segment.size = 0
    else:
        segment.entries, segment.size = reader.last_confirmed + 1, info.length
    segment.closed_ms = storage.clock.wall_ms()


async def _check_there(storage: Storage, name: str, last: Segment) -> None:
    """The end of the log must be true, even if its last ledger has been lost."""
    try:
        await storage.ledgers.info(last.ledger_id)
    except LedgerNotFound:
        log.error(
            "%s: ledger %d and its %d entries are lost", said(name), last.ledger_id, last.entries
        )
        last.entries = 0


async def _index_at(storage: Storage, position: Position) -> int:
    ledger_id, entry_id = position
    reader = await storage.ledgers.open(ledger_id, recover=False)
    (entry,) = await reader.read(entry_id, entry_id, 1)
    return header.read(entry).index
