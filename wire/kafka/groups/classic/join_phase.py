"""How long a round of joining lasts. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from magnetar.wire.kafka.groups.classic.group_record import StoreGroup


class RebalanceRules(Struct, frozen=True):
    """What holds for every group."""

    size_max: int
    first_delay_seconds: float
    new_id: Callable[[str], str]
    """A new unique id with that prefix."""
    keep: StoreGroup
    soon: Callable[[Callable[[], None]], None]
    """Has it called when the loop has come round once."""


class JoinPhase(Struct):
    """One time of joining."""

    ends: float
    latest: float
    """However many come, it does not last longer than that."""
    gathers: bool = False
    """It goes on until its end, for others may come."""
    grew: bool = False
    """A member has joined since its end was set."""

    def prolonged(self, now: float, seconds: float) -> bool:
        """Its end has come: whether it is prolonged, because a member joined in time."""
        if not (self.gathers and self.grew and self.ends < self.latest):
            return False
        self.ends, self.grew = min(now + seconds, self.latest), False
        return True


def begun(now: float, wait_seconds: float, gather_seconds: float | None) -> JoinPhase:
    """A rebalance with an initial delay, which may be zero, or one that waits for known members."""
    if gather_seconds is None:
        return JoinPhase(now + wait_seconds, now + wait_seconds)
    return JoinPhase(now + min(gather_seconds, wait_seconds), now + wait_seconds, gathers=True)
