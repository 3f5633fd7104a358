"""Calls at virtual times, in order; and what a frozen host does later."""

import trio

from magnetar.core.testing.simulation.timeline import Timeline


async def test_calls_are_made_in_order(autojump_clock, nursery):
    timeline, seen = Timeline(), []
    nursery.start_soon(timeline.run)
    begun = trio.current_time()
    for name, seconds in (("c", 3.0), ("a", 1.0), ("b", 1.0), ("now", 0.0)):
        timeline.call_in(seconds, seen.append, name)
    assert seen == [], "never at once"
    await trio.sleep(2.0)
    assert seen == ["now", "a", "b"]
    timeline.call_in(0.5, seen.append, "sooner")
    await trio.sleep(2.0)
    assert seen == ["now", "a", "b", "sooner", "c"]
    assert trio.current_time() == begun + 4.0
    nursery.cancel_scope.cancel()


async def test_a_frozen_host_does_it_later_in_the_same_order(autojump_clock, nursery):
    timeline, seen = Timeline(), []
    nursery.start_soon(timeline.run)
    host, other = timeline.host(), timeline.host()
    host.call_in(1.0, seen.append, "a")
    host.call_in(2.0, seen.append, "b")
    other.call_in(1.5, seen.append, "other")
    host.freeze()
    await trio.sleep(3.0)
    assert seen == ["other"]
    host.thaw()
    assert seen == ["other", "a", "b"]
    begun = trio.current_time()
    host.freeze()
    timeline.call_in(5.0, timeline.thaw_all)
    await host.sleep(1.0)
    assert trio.current_time() == begun + 5.0
    nursery.cancel_scope.cancel()


async def test_what_a_call_raises_is_told_and_the_others_are_made(autojump_clock, nursery):
    told, seen = [], []
    timeline = Timeline(told.append)
    nursery.start_soon(timeline.run)
    timeline.call_in(1.0, int, "no number")
    timeline.call_in(1.0, seen.append, 1)
    await trio.sleep(2.0)
    assert ([type(error) for error in told], seen) == ([ValueError], [1])
    nursery.cancel_scope.cancel()
