"""Limits that follow from others."""

from magnetar.bookie.requests.limits import RequestLimits


def test_the_reads_of_all_connections_are_those_of_apaches_threads() -> None:
    assert RequestLimits().reads_waiting_max == 80_000
    assert RequestLimits(max_pending_read_requests_per_thread=3).reads_waiting_max == 24
