"""Who has too many errors in too short a time."""

from magnetar.bookie.client.connection.quarantine import Quarantine


def test_errors_of_one_interval_count_together():
    quarantine = Quarantine(3, 60, 1800)
    quarantine.failed("a", 100, 2)
    quarantine.failed("b", 110)
    assert not quarantine.holds("a", 110)
    quarantine.failed("a", 159)
    assert quarantine.holds("a", 159)
    assert not quarantine.holds("b", 159)
    assert quarantine.holds("a", 159 + 1799)
    assert not quarantine.holds("a", 159 + 1800)


def test_errors_of_other_intervals_do_not():
    quarantine = Quarantine(3, 60, 1800)
    for now in range(0, 600, 30):
        quarantine.failed("a", now)
    assert not quarantine.holds("a", 600)


def test_it_is_off_without_a_threshold():
    quarantine = Quarantine(0, 60, 1800)
    quarantine.failed("a", 1, 1_000_000)
    assert not quarantine.holds("a", 2)
