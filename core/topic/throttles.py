"""The rates that a topic counts against: its own, its resource group's, and that of all topics.

Every run of messages counts against all of them. So which these are is computed when policies or
the group change, and a topic without any has empty tuples.
"""

from __future__ import annotations

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.rates import Inflow, Rates
from magnetar.core.kernel.throttle import Throttle, throttle_for
from magnetar.core.policy.policies import Effective
from magnetar.core.quotas.resource_group import DispatchTurns, ResourceGroup


class TopicThrottles:
    """See the module's docstring."""

    __slots__ = ("_clock", "_dispatch", "_of_all", "_publish", "dispatch", "group", "publish")

    def __init__(self, of_all: Throttle | None, clock: Clock) -> None:
        self.group: ResourceGroup | None = None
        self.publish: tuple[Throttle, ...] = ()
        """What producers count against."""
        self.dispatch: tuple[Throttle, ...] = ()
        """What subscriptions count against, beside the rate of their own."""
        self._clock = clock
        self._of_all = of_all
        self._publish: Throttle | None = None
        self._dispatch: Throttle | None = None

    @property
    def turns(self) -> DispatchTurns | None:
        """Of the group, if it limits delivery."""
        return None if self.group is None else self.group.turns

    def set(self, policies: Effective, inflow: Rates[Inflow]) -> None:
        """Have the rates of these policies, and of the group as it is now."""
        now = self._clock.monotonic()
        self._publish = throttle_for(policies.publish_rate, self._publish, now)
        self._dispatch = throttle_for(policies.dispatch_rate, self._dispatch, now, inflow)
        group = self.group
        shared = (None, None) if group is None else (group.publish, group.dispatch)
        self.publish = _present(self._publish, shared[0], self._of_all)
        self.dispatch = _present(self._dispatch, shared[1])


def _present(*throttles: Throttle | None) -> tuple[Throttle, ...]:
    return tuple(each for each in throttles if each is not None)
