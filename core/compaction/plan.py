"""Whether it is time to compact a log, and which of its ledgers. Pure.

It is when enough of what may be compacted is new, or when something new is so old that it must be.
Only ledgers that have ended are compacted, in one run from the beginning, and the last one of a log
never is: so its end, where clients and the next start look for it, is always as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from magnetar.core.ledger.log.chain import Chain, Segment
from magnetar.core.policy.values import Compaction

GROUP_BYTES_MAX: Final = 512 * 1024 * 1024
"""Of ledgers that are put into one: so much room is needed twice for a while."""


class Plan(Struct, frozen=True):
    """What is to be done."""

    segments: Sequence[Segment]
    dirty: Sequence[Segment]
    """Those of them that have not been compacted wholly, which are the last ones."""
    end: int
    """The index of the first message behind them."""


def plan(chain: Chain, clean_to: int, policy: Compaction, now_ms: int) -> Plan | None:
    """What there is to do, if it is worth it."""
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
    """Whether what is in that ledger must have been compacted by now."""
    since_ms = oldest.begun_ms or oldest.closed_ms
    return 0 <= max_lag_ms < now_ms - since_ms


def groups(
    segments: Sequence[Segment], bytes_max: int = GROUP_BYTES_MAX
) -> Iterator[list[Segment]]:
    """Neighbours that are put into one ledger each."""
    group: list[Segment] = []
    for segment in segments:
        if group and sum(one.size for one in group) + segment.size > bytes_max:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group
