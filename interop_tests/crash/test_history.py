"""The judge finds each kind of broken promise: else its silence would mean nothing."""

import pytest

from .history import Got, Outage, Sent, judge

OUTAGES = [Outage(10.0, 10.5, 11.0)]


def sent(number, at=0.0, receipt_at=1.0, of=None):
    return Sent(number, at, receipt_at, of or f"id-{number}")


def got(number, at=2.0, acked_at=0.0, of=None):
    return Got(number, of or f"id-{number}", at, acked_at)


def one_lane(number):
    return 0


def test_all_is_well():
    judge([sent(0), sent(1)], [got(0, 2.0), got(1, 3.0)], OUTAGES, lane=one_lane)


def test_lost():
    with pytest.raises(AssertionError, match="never came"):
        judge([sent(0), sent(1)], [got(0)], OUTAGES, lane=None)


def test_under_another_id():
    with pytest.raises(AssertionError, match="other ids"):
        judge([sent(0)], [got(0, of="else")], OUTAGES, lane=None)


def test_resent():
    twice = [got(0), got(0, of="again")]
    judge([sent(0, at=9.9, receipt_at=12.0)], twice, OUTAGES, lane=None)
    with pytest.raises(AssertionError, match="came as"):
        judge([sent(0, at=8.0, receipt_at=9.0)], twice, OUTAGES, lane=None)


def test_acknowledged_and_back():
    judge([sent(0)], [got(0, 2.0), got(0, 12.0)], OUTAGES, lane=None)
    # a copy that was under way already, and one of which the acknowledgement was lost
    judge([sent(0)], [got(0, 2.0, acked_at=2.5), got(0, 3.0)], OUTAGES, lane=None)
    judge([sent(0)], [got(0, 2.0, acked_at=11.5), got(0, 12.0)], OUTAGES, lane=None)
    with pytest.raises(AssertionError, match="came again"):
        judge([sent(0)], [got(0, 2.0, acked_at=2.5), got(0, 12.0)], OUTAGES, lane=None)
    # a client that keeps one message over the server's absence may give it afterwards, but no other
    judge([sent(0)], [got(0, 2.0, acked_at=2.5), got(0, 12.0)], OUTAGES, lane=None, kept=1)
    # what came before its process ended came from the server, not out of what the client keeps
    before = [got(0, 2.0, acked_at=2.5), got(1, 10.2), got(0, 12.0)]
    judge([sent(0), sent(1)], before, OUTAGES, lane=None, kept=1)
    both = [got(0, 2.0, acked_at=2.5), got(1, 12.0), got(0, 13.0)]
    with pytest.raises(AssertionError, match="came again"):
        judge([sent(0), sent(1)], both, OUTAGES, lane=None, kept=1)


def test_out_of_order():
    notes = [got(1, 2.0), got(0, 3.0)]
    judge([sent(0), sent(1)], notes, OUTAGES, lane=None)
    with pytest.raises(AssertionError, match="came after"):
        judge([sent(0), sent(1)], notes, OUTAGES, lane=one_lane)
