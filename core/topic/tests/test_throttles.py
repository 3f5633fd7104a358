"""Which rates a topic counts against."""

from __future__ import annotations

from math import inf

from magnetar.core.kernel.rates import Inflow, Rates
from magnetar.core.kernel.throttle import RateLimit, Throttle
from magnetar.core.policy.policies import Effective
from magnetar.core.quotas.resource_group import NO_RATES, GroupRates, ResourceGroup
from magnetar.core.testing.clock import FixedClock
from magnetar.core.topic.throttles import TopicThrottles

INFLOW = Rates(Inflow(), 0)


def test_none_is_nothing() -> None:
    throttles = TopicThrottles(None, FixedClock())
    throttles.set(Effective(), INFLOW)
    assert (throttles.publish, throttles.dispatch, throttles.turns) == ((), (), None)


def test_its_own_that_of_its_group_and_that_of_all() -> None:
    of_all, group = Throttle(RateLimit(9), 0.0), ResourceGroup("g")
    group.set(GroupRates(5, -1, 5, -1), 0.0)
    throttles = TopicThrottles(of_all, FixedClock())
    rates = Effective(publish_rate=RateLimit(1), dispatch_rate=RateLimit(2))
    throttles.group = group
    throttles.set(rates, INFLOW)
    assert [each.limit.messages for each in throttles.publish] == [1, 5, 9]
    assert [each.limit.messages for each in throttles.dispatch] == [2, 5]
    assert throttles.turns is group.turns
    own = throttles.publish[0]
    group.set(NO_RATES, 0.0)
    throttles.set(rates, INFLOW)
    assert throttles.publish == (own, of_all)
    assert throttles.turns is None


def test_topics_of_a_group_share_its_buckets() -> None:
    group = ResourceGroup("g")
    group.set(GroupRates(5, -1, 5, -1), 0.0)
    one, other = (TopicThrottles(None, FixedClock()) for _ in range(2))
    for throttles in (one, other):
        throttles.group = group
        throttles.set(Effective(), INFLOW)
    assert one.dispatch[0] is other.dispatch[0]
    mine, theirs = one.publish[0], other.publish[0]
    mine.spend(15, 0)
    assert theirs.wait_seconds(0.0) == mine.wait_seconds(0.0) > 2
    assert theirs.allowance(0.0) == (-10, inf)


def test_who_waits_because_of_a_topic_goes_on_when_it_leaves() -> None:
    group = ResourceGroup("g")
    group.set(GroupRates(1), 0.0)
    one, other = (TopicThrottles(None, FixedClock()) for _ in range(2))
    for throttles in (one, other):
        throttles.group = group
        throttles.set(Effective(), INFLOW)
    mine, theirs = one.publish[0], other.publish[0]
    mine.spend(1_000, 0)
    one.set(Effective(), INFLOW)
    assert one.publish == (mine,), "nothing has changed"
    one.group = None
    one.set(Effective(), INFLOW)
    assert one.publish == ()
    assert mine.wait_seconds(0.0) == 0
    mine.spend(1_000, 0)
    assert 990 < theirs.wait_seconds(0.0) < 1_000
    group.set(GroupRates(2), 0.0)
    assert theirs.wait_seconds(0.0) == 0
