"""When a ledger is full, and which ledgers may be deleted. Pure.

Retention concerns acknowledged messages, as in Pulsar: a ledger that any durable cursor still needs
is never deleted, whatever its age or size. The limits of a log concern all messages, read or not,
as Kafka's `retention.ms` and `retention.bytes` do. Whole ledgers are deleted, oldest first, and
never the one being written (`ManagedLedgerImpl.internalTrimLedgers` of Pulsar 4.2; segments of
Kafka's `UnifiedLog.deleteOldSegments`).
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.policy.values import LedgerLimits, LogLimits, Retention

MINUTE_MS = 60_000
MEGABYTE = 1024 * 1024


class RollLimits(Struct, frozen=True):
    """When the next ledger is created; the defaults are those of Pulsar's `broker.conf`."""

    entries_max: int = 50_000
    bytes_max: int = 2048 * MEGABYTE
    age_ms_min: int = 10 * MINUTE_MS
    """A full ledger is written on up to this age, so that a burst does not create thousands
    (`managedLedgerMinLedgerRolloverTimeMinutes`)."""
    age_ms_max: int = 240 * MINUTE_MS
    """A ledger that is not empty ends at this age, full or not."""


POLICY_AGE_MS_MIN = 1_000
"""The least `age_ms_min` where a policy limits the size of ledgers."""


def effective(limits: RollLimits, policy: LedgerLimits | None, lag_ms: int = -1) -> RollLimits:
    """The broker's limits as the policies of one log change them.

    `lag_ms` is the time after which a message must be compacted (`max.compaction.lag.ms`, KIP-354):
    its ledger has to end before.
    """
    if policy is not None:
        limits = _with_policy(limits, policy)
    if 0 <= lag_ms < limits.age_ms_max:
        limits = replace(limits, age_ms_max=lag_ms)
    return limits


def _with_policy(limits: RollLimits, policy: LedgerLimits) -> RollLimits:
    size, age_ms = policy.size_bytes, policy.age_ms
    age_ms_max = age_ms if age_ms >= 0 else limits.age_ms_max
    return RollLimits(
        entries_max=limits.entries_max,
        bytes_max=size if size >= 0 else limits.bytes_max,
        age_ms_min=min(limits.age_ms_min, age_ms_max, POLICY_AGE_MS_MIN),
        age_ms_max=age_ms_max,
    )


def should_roll(limits: RollLimits, entries: int, size: int, age_ms: int) -> bool:
    """Whether a ledger of that size and age is due to be closed."""
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


def beyond(segments: Sequence[Segment], limits: LogLimits, now_ms: int) -> list[int]:
    """Ids of the ledgers that exceed the limits of their log.

    A ledger is deleted for size only if the rest is still as large as the limit, as Kafka deletes
    segments (`UnifiedLog.deleteRetentionSizeBreachedSegments`).
    """
    doomed: list[int] = []
    kept_bytes = sum(segment.size for segment in segments)
    for segment in segments:
        too_old = 0 <= limits.age_ms < now_ms - segment.closed_ms
        too_big = 0 <= limits.size_bytes <= kept_bytes - segment.size
        if not segment.closed_ms or not (too_old or too_big):
            break
        kept_bytes -= segment.size
        doomed.append(segment.ledger_id)
    return doomed


def _expired(segment: Segment, kept_bytes: int, retention: Retention, now_ms: int) -> bool:
    """Whether a limit of retention, time or size, is reached; -1 never is."""
    minutes, megabytes = retention.retention_time_in_minutes, retention.retention_size_in_mb
    if minutes == 0 or megabytes == 0:
        # zero for either one switches retention off, as in Pulsar
        return True
    too_old = minutes > 0 and now_ms - segment.closed_ms >= minutes * MINUTE_MS
    too_big = megabytes > 0 and kept_bytes > megabytes * MEGABYTE
    return too_old or too_big
