"""Times as tools read them."""

from magnetar.core.kernel.dates import MS_MAX, iso_date


def test_times_have_milliseconds_and_an_offset() -> None:
    assert iso_date(1_700_000_000_123) == "2023-11-14T22:13:20.123+00:00"


def test_what_no_calendar_has_is_no_time() -> None:
    assert iso_date(None) is None
    assert iso_date(-1) is None
    assert iso_date(2**64) is None
    assert iso_date(MS_MAX) is not None
