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


class GroupShare(Throttle):
    """A group's rate as one topic counts against it: lifted when the topic leaves, for those alone
    who wait because of this topic.
    """

    __slots__ = ("of",)

    def __init__(self, of: Throttle) -> None:
        super().__init__(of.limit, 0.0)
        self.of: Throttle | None = of

    def lift(self) -> None:
        super().lift()
        self.of = None

    def spend(self, messages: float, size: float) -> None:
        if self.of is not None:
            self.of.spend(messages, size)

    def allowance(self, now: float) -> tuple[float, float]:
        return super().allowance(now) if self.of is None else self.of.allowance(now)


class TopicThrottles:
    """See the module's docstring."""

    __slots__ = (
        "_clock",
        "_dispatch",
        "_of_all",
        "_publish",
        "_share",
        "dispatch",
        "group",
        "publish",
    )

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
        self._share: GroupShare | None = None

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
        self._set_share(None if group is None else group.publish)
        self.publish = _present(self._publish, self._share, self._of_all)
        self.dispatch = _present(self._dispatch, None if group is None else group.dispatch)

    def _set_share(self, of: Throttle | None) -> None:
        share = self._share
        if share is not None and share.of is not of:
            share.lift()
            self._share = None
        if of is not None and self._share is None:
            self._share = GroupShare(of)


def _present(*throttles: Throttle | None) -> tuple[Throttle, ...]:
    return tuple(each for each in throttles if each is not None)
