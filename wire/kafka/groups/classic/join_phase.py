"""The duration of the join phase of a rebalance. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from magnetar.wire.kafka.groups.classic.group_record import StoreGroup


class RebalanceRules(Struct, frozen=True):
    """The options of rebalances, for all groups."""

    size_max: int
    first_delay_seconds: float
    new_id: Callable[[str], str]
    """Makes a unique id with that prefix."""
    keep: StoreGroup
    call_soon: Callable[[Callable[[], None]], None]
    """Schedules a call for the next turn of the loop."""


class JoinPhase(Struct):
    """A join phase."""

    ends: float
    latest: float
    """The latest end, however many members join."""
    gathers: bool = False
    """Whether it waits until its end, because more members may join (the initial delay)."""
    grew: bool = False
    """Whether a member has joined since its end was set."""

    def prolonged(self, now: float, seconds: float) -> bool:
        """Prolong the phase at its end if a member has joined meanwhile; returns whether it did."""
        if not (self.gathers and self.grew and self.ends < self.latest):
            return False
        self.ends, self.grew = min(now + seconds, self.latest), False
        return True


def begun(now: float, wait_seconds: float, gather_seconds: float | None) -> JoinPhase:
    """Begin a phase with an initial delay, which may be zero, or one that waits for members."""
    if gather_seconds is None:
        return JoinPhase(now + wait_seconds, now + wait_seconds)
    return JoinPhase(now + min(gather_seconds, wait_seconds), now + wait_seconds, gathers=True)
