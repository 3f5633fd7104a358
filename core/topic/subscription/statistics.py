"""Snapshots of a subscription for stats, metrics and tests, however its entries are dealt out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from magnetar.core.ledger.log.chain import Position

if TYPE_CHECKING:
    from magnetar.core.topic.subscription.consumer import Consumer


class SubscriptionStatistics(Struct, frozen=True):
    """What is going on between a cursor and its consumers."""

    read: Position
    """The next entry that was not looked at yet."""
    active: Consumer | None = None
    """The active consumer, of types with one."""
    unacked: int = 0
    blocked: bool = False
    """Too much is unacknowledged, all consumers together."""
    delayed: int = 0
    in_replay: int = 0
    sticky: bool = False
    out_of_order: bool = False
    draining: Mapping[int, tuple[Consumer, int]] = {}
    """Hashes that have another owner now: who still holds entries of each, and how many."""
    drained_total: int = 0
    hash_ranges: Mapping[str, list[tuple[int, int]]] = {}
    """Of each consumer's name, where entries are dealt out by key."""


class LastTimes(NamedTuple):
    """When consumers last did something, in ms since 1970; 0 for never."""

    flow_ms: int
    consumed_ms: int
    acked_ms: int

    def with_those(self, consumers: Iterable[Consumer]) -> LastTimes:
        """These, and what consumers that are attached did since."""
        flow_ms, consumed_ms, acked_ms = self
        for each in consumers:
            flow_ms = max(flow_ms, each.last_flow_ms)
            consumed_ms = max(consumed_ms, each.last_consumed_ms)
            acked_ms = max(acked_ms, each.last_acked_ms)
        return LastTimes(flow_ms, consumed_ms, acked_ms)


NO_TIMES: Final = LastTimes(0, 0, 0)
