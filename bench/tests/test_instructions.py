"""Valgrind's report, and what is made of two of them."""

import pytest

from bench.instructions import Count, per_message, total

REPORT = """==26285== Cachegrind, a high-precision tracing profiler
==26285==
==26285== I   refs:      1,040,142,678
"""


def test_the_sum_is_read() -> None:
    assert total(REPORT) == 1_040_142_678


def test_a_report_without_a_sum_is_shown() -> None:
    with pytest.raises(ValueError, match="no such tool"):
        total("valgrind: no such tool")


def test_what_the_start_costs_is_left_out() -> None:
    start, each = 1_000_000, 300
    short, long = (Count(start + messages * each, messages) for messages in (200, 2_200))
    assert per_message(short, long) == each
