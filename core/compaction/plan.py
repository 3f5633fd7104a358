"""Decides when a log is compacted, and which of its ledgers. Pure.

A log is compacted when the part that is new since the last time is large enough
(`min.cleanable.dirty.ratio`), or when a new message is so old that it must be
(`max.compaction.lag.ms`, KIP-354). Only closed ledgers are compacted, all from the beginning on,
and never the last one of a log, as Kafka never cleans the active segment: so the end of a log is
always as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from magnetar.core.ledger.log.chain import Chain, Segment
from magnetar.core.policy.values import Compaction

GROUP_BYTES_MAX: Final = 512 * 1024 * 1024
"""The size of the ledgers that are joined into one; it is needed twice for a while."""


class Plan(Struct, frozen=True):
    """The ledgers to compact."""

    segments: Sequence[Segment]
    dirty: Sequence[Segment]
    """The last ones of them, which were not compacted entirely before."""
    end: int
    """The index of the first message after them."""


def plan(chain: Chain, clean_to: int, policy: Compaction, now_ms: int) -> Plan | None:
    """The plan for a log; None if compaction is not due."""
    ripe: list[Segment] = []
    ends: list[int] = []
    for segment, after in zip(chain.segments, chain.segments[1:], strict=False):
        young = now_ms - segment.closed_ms < policy.min_lag_ms
        if not segment.closed_ms or young:
            break
        if segment.ledger_id >= chain.confirmed[0]:
            break
        ripe.append(segment)
        ends.append(after.first_index)
    dirty = [segment for segment, end in zip(ripe, ends, strict=True) if end > clean_to]
    size, all_size = sum(one.size for one in dirty), sum(one.size for one in ripe)
    if not dirty:
        return None
    if size < policy.dirty_ratio * all_size and not _is_late(dirty[0], policy.max_lag_ms, now_ms):
        return None
    return Plan(ripe, dirty, ends[-1])


def _is_late(oldest: Segment, max_lag_ms: int, now_ms: int) -> bool:
    """Whether the messages of a ledger exceed the maximum compaction lag."""
    since_ms = oldest.begun_ms or oldest.closed_ms
    return 0 <= max_lag_ms < now_ms - since_ms


def groups(
    segments: Sequence[Segment], bytes_max: int = GROUP_BYTES_MAX
) -> Iterator[list[Segment]]:
    """Groups of neighbours, each of which is written into one ledger."""
    group: list[Segment] = []
    for segment in segments:
        if group and sum(one.size for one in group) + segment.size > bytes_max:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group
