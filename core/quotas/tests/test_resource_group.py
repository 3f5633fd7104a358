"""A resource group: its record, its buckets, and turns."""

from __future__ import annotations

import msgspec
import trio
from trio.testing import MockClock

from magnetar.core.kernel.throttle import UNLIMITED, RateLimit, Throttle
from magnetar.core.quotas.resource_group import NO_RATES, DispatchTurns, GroupRates, ResourceGroup


class Now:
    """Trio's clock as the broker's."""

    def monotonic(self) -> float:
        return trio.current_time()

    def wall_ms(self) -> int:
        return round(trio.current_time() * 1000)


def test_the_record_is_apaches() -> None:
    stored = GroupRates(publish_rate_in_msgs=5).over(NO_RATES)
    assert msgspec.json.decode(msgspec.json.encode(stored)) == {
        "publishRateInMsgs": 5,
        "publishRateInBytes": -1,
        "dispatchRateInMsgs": -1,
        "dispatchRateInBytes": -1,
    }
    later = GroupRates(dispatch_rate_in_bytes=7, publish_rate_in_msgs=-1).over(stored)
    assert later == GroupRates(-1, -1, -1, 7)


def test_what_limits_nothing() -> None:
    assert GroupRates(5, None, 0, -1).publish == RateLimit(5)
    assert GroupRates(5, None, 0, -1).dispatch == UNLIMITED
    assert NO_RATES.publish == GroupRates(-7, 0).publish == UNLIMITED


def test_buckets_come_stay_and_go() -> None:
    group = ResourceGroup("g")
    assert not group.known
    assert not group.set(NO_RATES, 0.0), "there was none"
    assert group.known
    assert group.set(GroupRates(5, -1, 5, -1), 0.0)
    publish, dispatch, turns = group.publish, group.dispatch, group.turns
    assert publish is not None
    assert dispatch is not None
    assert turns is not None
    assert turns.throttle is dispatch
    assert not group.set(GroupRates(5, 0, 5, None), 1.0), "the same rates in other words"
    assert group.set(GroupRates(5, -1, 6, -1), 1.0)
    assert (group.publish, group.dispatch is dispatch) == (publish, False)
    assert group.turns is not turns
    publish.spend(100, 0)
    assert group.set(NO_RATES, 1.0)
    assert (group.publish, group.dispatch, group.turns) == (None, None, None)
    assert publish.wait_seconds(1.0) == 0, "who waits for it goes on"


def test_what_is_taken_is_counted_whatever_the_rate_is_then() -> None:
    group = ResourceGroup("g")
    for rate in (5, 7):
        group.set(GroupRates(rate, -1, rate, -1), 0.0)
        assert group.publish is not None
        assert group.dispatch is not None
        group.publish.spend(3, 100)
        group.dispatch.spend(2, 10)
    assert (group.published.messages, group.published.bytes) == (6, 200)
    assert (group.delivered.messages, group.delivered.bytes) == (4, 20)
    assert group.publish.allowance(0.0)[0] == 4


async def test_they_go_on_in_the_order_in_which_they_came(autojump_clock: MockClock) -> None:
    throttle = Throttle(RateLimit(1), trio.current_time())
    turns, order = DispatchTurns(throttle), []

    async def wait(number: int) -> None:
        for time in range(3):
            await turns.take(Now())
            order.append((time, number))
            throttle.spend(1, 0)

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(wait, number)
            await trio.testing.wait_all_tasks_blocked(0.0001)
    assert order == [(time, number) for time in range(3) for number in range(5)]
    assert 13 < trio.current_time() - began < 16
