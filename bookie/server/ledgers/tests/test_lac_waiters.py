"""Waiters for a LAC: called once, cancelled, bounded."""

from functools import partial

from magnetar.bookie.server.ledgers.lac_waiters import LacWaiters


def test_those_that_know_less_are_called():
    waiters, called = LacWaiters(), []
    for beyond in (-1, 0, 5):
        waiters.wait(1, beyond, partial(called.append, beyond))
    waiters.wait(2, -1, partial(called.append, "other"))
    waiters.advanced(1, 0)
    assert called == [-1]
    waiters.advanced(1, 5)
    assert called == [-1, 0]
    waiters.ended(1)
    assert called == [-1, 0, 5]
    assert len(waiters) == 1


def test_a_cancelled_one_is_not_called():
    waiters = LacWaiters()
    waiter = waiters.wait(1, 0, lambda: 1 / 0)
    waiters.cancel(waiter)
    waiters.cancel(waiter)
    waiters.advanced(1, 9)
    waiters.ended(1)
    assert len(waiters) == 0


def test_no_more_than_the_limit():
    waiters = LacWaiters(2)
    assert waiters.wait(1, 0, lambda: None)
    assert waiters.wait(2, 0, lambda: None)
    assert waiters.wait(3, 0, lambda: None) is None
    waiters.ended(1)
    assert waiters.wait(3, 0, lambda: None)
