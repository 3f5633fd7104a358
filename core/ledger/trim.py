"""When a ledger is full, and which ledgers may go. Pure.

Retention is about acknowledged messages: a ledger that any durable cursor still needs is never
deleted, whatever its age or size. Whole ledgers go, oldest first, and never the one being written.
"""

from collections.abc import Sequence

from msgspec import Struct

from core.ledger.chain import Position, Segment
from core.policies import Retention

MINUTE_MS = 60_000
MEGABYTE = 1024 * 1024


class RollLimits(Struct, frozen=True):
    """When the next ledger is begun."""

    entries_max: int = 50_000
    bytes_max: int = 2048 * MEGABYTE
    age_ms_min: int = 10 * MINUTE_MS
    """A full ledger goes on until it is so old, so that a burst does not make thousands."""
    age_ms_max: int = 240 * MINUTE_MS
    """A ledger with anything in it ends at this age, full or not."""


def should_roll(limits: RollLimits, entries: int, size: int, age_ms: int) -> bool:
    """Whether a ledger with so much in it is to be closed."""
    if age_ms >= limits.age_ms_max:
        return entries > 0
    full = entries >= limits.entries_max or size >= limits.bytes_max
    return full and age_ms >= limits.age_ms_min


def trimmable(
    segments: Sequence[Segment], needed_from: Position, retention: Retention, now_ms: int
) -> list[int]:
    """Ids of the ledgers to delete; `needed_from` is the lowest position not acknowledged."""
    doomed: list[int] = []
    kept_bytes = sum(segment.size for segment in segments)
    for segment in segments:
        last: Position = (segment.ledger_id, segment.entries - 1)
        if not segment.closed_ms or last >= needed_from:
            break
        if not _expired(segment, kept_bytes, retention, now_ms):
            break
        kept_bytes -= segment.size
        doomed.append(segment.ledger_id)
    return doomed


def _expired(segment: Segment, kept_bytes: int, retention: Retention, now_ms: int) -> bool:
    """Time and size each keep a ledger; either limit reached lets it go, -1 is never reached."""
    minutes, megabytes = retention.retention_time_in_minutes, retention.retention_size_in_mb
    if minutes == 0 or megabytes == 0:
        # as Pulsar has it: zero on one side switches retention off
        return True
    too_old = minutes > 0 and now_ms - segment.closed_ms >= minutes * MINUTE_MS
    too_big = megabytes > 0 and kept_bytes > megabytes * MEGABYTE
    return too_old or too_big
