"""Recovery of a log that is opened again: reads its list of ledgers and finds where it ends.

A ledger that its last writer left open is recovered and sealed, which fences that writer, as in
Pulsar (`ManagedLedgerImpl.initialize` opens the last ledger with recovery). Ledgers that are empty,
missing, or another log's leave the list. Nothing is stored and no ledger is deleted here: the
caller does both, in that order.

Invariant: the result has every entry that was ever confirmed, and an index above all of theirs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from magnetar.core.entry import header
from magnetar.core.kernel.errors import Corrupted, LedgerNotFound, StorageFailed
from magnetar.core.ledger import formats
from magnetar.core.ledger.ledger_owner import is_anothers
from magnetar.core.ledger.log.chain import START, Position, Segment
from magnetar.core.ledger.log.ledger_list_record import MIXED, NEXT_INDEX, doomed_of, segments_of
from magnetar.core.ledger.log.remaining_entries import (
    REMAINING,
    RemainingEntries,
    decoded,
    id_entries,
    parse_location,
)
from magnetar.core.ledger.read.latest_time import UNKNOWN_TIME
from magnetar.core.ledger.write_failure_log import log_name
from magnetar.core.ports.metadata_store import Versioned

if TYPE_CHECKING:
    from magnetar.core.ledger.storage import Storage

log = logging.getLogger(__name__)

IDS_BYTES: Final = 1024 * 1024
"""Bytes of the ids of a compacted ledger's entries that one read returns."""
LOST_MESSAGES_MAX: Final = 1_000_000
"""Messages assumed in an entry at the end that cannot be read: indexes are skipped, since none may
be given twice."""


class RecoveredLog(Struct, frozen=True):
    """The state of a log that is opened again."""

    segments: list[Segment]
    confirmed: Position
    properties: dict[str, str]
    next_index: int
    terminated: Position | None
    doomed: list[int]
    """Ledgers to delete, which are not part of the log."""
    changed: bool
    """Whether the list has to be stored."""


async def find(storage: Storage, name: str, stored: Versioned) -> RecoveredLog:
    """Read the list and recover the end of the log."""
    info = formats.decode_managed_ledger(stored.value)
    listed, index = segments_of(info)
    unsealed = [segment for segment in listed if not segment.closed_ms]
    for segment in unsealed:
        found = await seal(storage, name, segment.ledger_id)
        segment.entries, segment.size, segment.closed_ms = found
        if MIXED in info.properties:
            segment.others = {**segment.others, **UNKNOWN_TIME}
    if listed and listed[-1] not in unsealed:
        await _check_there(storage, name, listed[-1])
    for segment in listed:
        if REMAINING in segment.others and segment.entries:
            await _find_remaining(storage, name, segment)
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
    doomed = doomed_of(properties)
    return RecoveredLog(
        segments=segments,
        confirmed=confirmed,
        properties=properties,
        next_index=next_index,
        terminated=info.terminated,
        doomed=[*(segment.ledger_id for segment in listed if not segment.entries), *doomed],
        # A former owner may be about to give a doomed ledger its place (`create_beside`): it is
        # fenced by a write of the list before anything is deleted.
        changed=bool(unsealed) or len(segments) != len(listed) or bool(doomed),
    )


class SealedEnd(NamedTuple):
    """Where a ledger ends."""

    entries: int
    size: int
    closed_ms: int


async def seal(storage: Storage, name: str, ledger_id: int) -> SealedEnd:
    """Seal a ledger whose writer is gone, which also fences that writer."""
    now_ms = storage.clock.wall_ms()
    try:
        if await is_anothers(storage.ledgers, ledger_id, name):
            return SealedEnd(0, 0, now_ms)
        reader = await storage.ledgers.open(ledger_id, recover=True)
        info = await storage.ledgers.info(ledger_id)
    except LedgerNotFound:
        # its writer named it in the list, and was gone before or after it was created
        log.warning("%s: ledger %d is listed but not there", log_name(name), ledger_id)
        return SealedEnd(0, 0, now_ms)
    except StorageFailed as error:
        if ledger_id not in storage.unsealed:  # clients ask again and again
            storage.unsealed.add(ledger_id)
            log.warning("%s: ledger %d cannot be recovered: %s", log_name(name), ledger_id, error)
        raise
    storage.unsealed.discard(ledger_id)
    return SealedEnd(reader.last_confirmed + 1, info.length, now_ms)


async def _check_there(storage: Storage, name: str, last: Segment) -> None:
    """Note the loss of the last ledger, because the end of the log must exist."""
    try:
        location = last.others.get(REMAINING)
        stored_in = last.ledger_id if location is None else parse_location(location)[0]
        lost = await is_anothers(storage.ledgers, stored_in, name)
    except LedgerNotFound:
        lost = True
    if lost:
        log.error(
            "%s: ledger %d and its %d entries are lost",
            log_name(name),
            last.ledger_id,
            last.entries,
        )
        last.entries = 0


async def _find_remaining(storage: Storage, name: str, segment: Segment) -> None:
    try:
        segment.remaining = await _remaining(storage, segment.others[REMAINING])
    except (LedgerNotFound, Corrupted):
        log.error("%s: what was left of ledger %d is lost", log_name(name), segment.ledger_id)
        segment.entries = 0


async def _remaining(storage: Storage, location: str) -> RemainingEntries:
    """What compaction left of a ledger; the ids are stored after the entries."""
    ledger_id, first, count = parse_location(location)
    reader = await storage.ledgers.open(ledger_id, recover=False)
    at, end = first + count, first + count + id_entries(count)
    entries: list[bytes] = []
    while at < end:
        entries += await reader.read(at, end - 1, IDS_BYTES)
        at = first + count + len(entries)
    return RemainingEntries(ledger_id, first, decoded(entries, count))


async def _index_at(storage: Storage, position: Position) -> int:
    ledger_id, entry_id = position
    reader = await storage.ledgers.open(ledger_id, recover=False)
    lost = 0
    while True:
        try:
            (entry,) = await reader.read(entry_id, entry_id, 1)
        except Corrupted:
            first, _ = await reader.damage(entry_id)
            lost += entry_id - first + 1
            if not first:
                return lost * LOST_MESSAGES_MAX
            entry_id = first - 1
        else:
            return header.read(entry).index + lost * LOST_MESSAGES_MAX
