"""A resource group: rates that all topics of some namespaces share (PIP-82 of Pulsar).

The record is Apache's, at its path (`ResourceGroup.java`, `ResourceGroupResources.java` of 4.2). A
field that is left out, 0 and -1 are no limit. The group is the one of a record that loaded topics
count against: its buckets are these objects, whichever topic takes from them.
"""

from __future__ import annotations

from typing import Final

import trio
from msgspec import Struct

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import RateLimit, Throttle, throttle_for

PATH: Final = "/admin/resourcegroups"
LONG_MAX: Final = (1 << 63) - 1
TURN_SECONDS: Final = 0.001
"""The shortest turn: within it a sweep of the link delivers what may be delivered now."""


class GroupRates(Struct, frozen=True, rename="camel"):
    """The rates as tools send them and as they are stored, in a second."""

    publish_rate_in_msgs: int | None = None
    publish_rate_in_bytes: int | None = None
    dispatch_rate_in_msgs: int | None = None
    dispatch_rate_in_bytes: int | None = None

    def over(self, before: GroupRates) -> GroupRates:
        """These rates, and those before where these name none; all have a number."""
        pairs = ((getattr(self, name), getattr(before, name)) for name in self.__struct_fields__)
        return GroupRates(*(was if rate is None else rate for rate, was in pairs))

    @property
    def publish(self) -> RateLimit:
        return _limit(self.publish_rate_in_msgs, self.publish_rate_in_bytes)

    @property
    def dispatch(self) -> RateLimit:
        return _limit(self.dispatch_rate_in_msgs, self.dispatch_rate_in_bytes)


NO_RATES: Final = GroupRates(-1, -1, -1, -1)
"""What Apache's broker stores for fields that nobody has named."""


def _limit(messages: int | None, size: int | None) -> RateLimit:
    """Others may have written the record: a number that is too large for a float is no limit."""
    return RateLimit(_bounded(messages or 0), _bounded(size or 0))


def _bounded(rate: int) -> int:
    return rate if 0 < rate <= LONG_MAX else 0


class DispatchTurns:
    """The subscriptions of all topics that wait for one dispatch rate.

    The first one to look would take all that there is, each time. So they go on one after the
    other, in the order in which they began to wait (trio's lock is fair), and nobody wakes up for
    the messages that another one gets.
    """

    __slots__ = ("_lock", "throttle")

    def __init__(self, throttle: Throttle) -> None:
        self.throttle = throttle
        self._lock = trio.Lock()

    async def take(self, clock: Clock) -> None:
        """Wait until it is the caller's turn, and something may be delivered."""
        async with self._lock:
            wait = self.throttle.wait_seconds(clock.monotonic())
            await trio.sleep(max(wait, TURN_SECONDS))


class GroupUse(Struct):
    """What has counted against one rate of a group since one of its topics was loaded."""

    messages: float = 0
    bytes: float = 0


class GroupBucket(Throttle):
    """A bucket that counts what is taken."""

    __slots__ = ("_use",)

    def __init__(self, limit: RateLimit, now: float, use: GroupUse) -> None:
        super().__init__(limit, now)
        self._use = use

    def spend(self, messages: float, size: float) -> None:
        super().spend(messages, size)
        self._use.messages += messages
        self._use.bytes += size


class ResourceGroup:
    """The buckets of a group. None is no limit: then nothing is counted."""

    __slots__ = (
        "__weakref__",
        "delivered",
        "dispatch",
        "is_due",
        "known",
        "name",
        "publish",
        "published",
        "turns",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = False
        """Whether the record has been read; there may be none."""
        self.is_due = False
        """Whether there are topics that still have former buckets."""
        self.publish: Throttle | None = None
        self.dispatch: Throttle | None = None
        self.published, self.delivered = GroupUse(), GroupUse()
        self.turns: DispatchTurns | None = None
        """Of the subscriptions that wait for the dispatch rate."""

    def set(self, rates: GroupRates, now: float) -> bool:
        """Have these rates from now on; returns whether a bucket has come, gone or changed."""
        before = self.publish, self.dispatch
        self.publish = _bucket(rates.publish, self.publish, now, self.published)
        self.dispatch = _bucket(rates.dispatch, self.dispatch, now, self.delivered)
        if self.dispatch is not before[1]:
            self.turns = None if self.dispatch is None else DispatchTurns(self.dispatch)
        self.known = True
        return (self.publish, self.dispatch) != before


def _bucket(
    limit: RateLimit, before: Throttle | None, now: float, use: GroupUse
) -> Throttle | None:
    found = throttle_for(limit, before, now)
    return found if found is None or found is before else GroupBucket(limit, now, use)
