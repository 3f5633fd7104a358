"""The histogram's buckets."""

from magnetar.bookie.server.statistics import Histogram


def test_values_fall_below_their_bounds():
    histogram = Histogram((1.0, 2.0), [0, 0, 0])
    for value in (0.5, 1.0, 1.5, 3.0):
        histogram.add(value)
    assert histogram.counts == [2, 1, 1]
    assert histogram.count == 4
    assert histogram.total == 6.0
    copy = histogram.copy()
    histogram.add(1.0)
    assert copy.count == 4
