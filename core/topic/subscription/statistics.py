"""Snapshots of a subscription of any type, for statistics, metrics and tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from magnetar.core.ledger.log.chain import Position

if TYPE_CHECKING:
    from magnetar.core.topic.subscription.consumer import Consumer


class SubscriptionStatistics(Struct, frozen=True):
    """The state of dispatch between a cursor and its consumers."""

    read: Position
    """The read position."""
    active: Consumer | None = None
    """The active consumer, of types with one."""
    unacked: int = 0
    blocked: bool = False
    """The limit of unacknowledged messages is reached."""
    delayed: int = 0
    in_replay: int = 0
    sticky: bool = False
    out_of_order: bool = False
    draining: Mapping[int, tuple[Consumer, int]] = {}
    """Hashes with a new owner: the consumer that still has pending entries, and how many
    (`drainingHashes` of PIP-379)."""
    drained_total: int = 0
    hash_ranges: Mapping[str, list[tuple[int, int]]] = {}
    """The hash ranges of each consumer, by name, for Key_Shared."""


class LastTimes(NamedTuple):
    """When consumers last did something, in ms since 1970; 0 for never."""

    flow_ms: int
    consumed_ms: int
    acked_ms: int

    def with_those(self, consumers: Iterable[Consumer]) -> LastTimes:
        """The later of these times and those of attached consumers."""
        flow_ms, consumed_ms, acked_ms = self
        for each in consumers:
            flow_ms = max(flow_ms, each.last_flow_ms)
            consumed_ms = max(consumed_ms, each.last_consumed_ms)
            acked_ms = max(acked_ms, each.last_acked_ms)
        return LastTimes(flow_ms, consumed_ms, acked_ms)


NO_TIMES: Final = LastTimes(0, 0, 0)
