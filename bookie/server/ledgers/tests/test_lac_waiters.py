"""Waiters for a LAC: called once, cancelled, bounded."""

from functools import partial

from magnetar.bookie.server.ledgers.lac_waiters import COMPACT_AT, FEW, LacWaiters


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


class Compared(int):
    """A LAC that counts how often it is compared."""

    times = 0

    def __lt__(self, other):
        Compared.times += 1
        return int(self) < int(other)


def test_a_lac_costs_only_those_that_it_wakes():
    waiters, called = LacWaiters(), []
    for beyond in range(10_000, 0, -1):
        waiters.wait(1, Compared(beyond), partial(called.append, beyond))
    Compared.times = 0
    for _ in range(1000):
        waiters.advanced(1, 0)
    assert Compared.times == 1000
    waiters.advanced(1, 3)
    assert called == [1, 2]
    assert Compared.times < 1100


def test_those_that_know_the_same_are_called_as_they_came():
    waiters, called = LacWaiters(), []
    for name in "abcde":
        waiters.wait(1, 7, partial(called.append, name))
    waiters.advanced(1, 8)
    assert called == list("abcde")


def test_one_that_is_called_may_wait_again_or_cancel_the_next():
    waiters, called = LacWaiters(), []

    def again():
        called.append("again")
        waiters.cancel(second)
        waiters.wait(1, 5, partial(called.append, "waits"))

    waiters.wait(1, 0, again)
    second = waiters.wait(1, 0, lambda: 1 / 0)
    waiters.advanced(1, 9)
    assert called == ["again"]
    assert len(waiters) == 1
    waiters.advanced(1, 9)
    assert called == ["again", "waits"]
    assert len(waiters) == 0


def test_cancelled_ones_do_not_gather():
    waiters = LacWaiters()
    waiters.wait(1, 2**62, lambda: None)
    for _ in range(1000):
        waiters.cancel(waiters.wait(1, 2**62, lambda: None))
    assert len(waiters) == 1
    assert len(waiters._waiting[1].heap) <= COMPACT_AT + 2


def test_one_client_has_a_part_of_what_others_leave():
    waiters, own = LacWaiters(1000), 0
    while waiters.has_place(own):
        waiters.wait(1, 0, lambda: None)
        own += 1
    assert own == 125
    assert waiters.has_place(0)
    for _ in range(874):
        waiters.wait(1, 0, lambda: None)
    assert waiters.has_place(FEW - 1)
    assert not waiters.has_place(FEW)
    waiters.wait(1, 0, lambda: None)
    assert not waiters.has_place(0)
