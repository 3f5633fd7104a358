"""Rates from counters."""

from magnetar.core.kernel.rates import Inflow, Outflow, Rates


def test_a_rate_is_the_mean_between_two_samples() -> None:
    rates = Rates(Inflow(), 1_000)
    rates.sample(Inflow(100, 5_000, 10), 11_000)
    assert rates.per_second == Inflow(10, 500, 1)
    rates.sample(Inflow(150, 5_500, 10), 21_000)
    assert rates.per_second == Inflow(5, 50, 0)


def test_a_rate_falls_to_nothing_when_nothing_happens() -> None:
    rates = Rates(Outflow(), 0)
    rates.sample(Outflow(messages=10), 10_000)
    rates.sample(Outflow(messages=10), 20_000)
    assert rates.per_second == Outflow()


def test_two_samples_at_once_do_not_make_a_flood() -> None:
    rates = Rates(Inflow(), 0)
    rates.sample(Inflow(10, 10, 0), 10_000)
    rates.sample(Inflow(1_000, 1_000, 0), 10_100)
    assert rates.per_second.messages == 1


def test_a_counter_that_began_again_is_no_negative_rate() -> None:
    rates = Rates(Inflow(), 0)
    rates.sample(Inflow(100, 100, 0), 10_000)
    rates.sample(Inflow(0, 200, 0), 20_000)
    assert rates.per_second == Inflow(0, 10, 0)


def test_a_clock_that_is_set_back_costs_one_sample() -> None:
    rates = Rates(Inflow(), 1_000_000)
    rates.sample(Inflow(10), 500_000)
    assert rates.per_second.messages == 0
    rates.sample(Inflow(20), 510_000)
    assert rates.per_second.messages == 1


def test_outflows_add_up() -> None:
    assert Outflow(1, 2, 3, 4, 5).plus(Outflow(1, 1, 1, 1, 1)) == Outflow(2, 3, 4, 5, 6)
