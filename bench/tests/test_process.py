import pytest

from bench.drive.metrics import parse_gauge
from bench.drive.process import parse_cpu_seconds, parse_memory, parse_thread_seconds


def test_cpu_is_counted_behind_a_name_with_spaces_and_parentheses() -> None:
    before = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 "
    assert parse_cpu_seconds(before + "150 50 0 0 20 0", 100) == 2.0


def test_memory_is_read_in_megabytes() -> None:
    held = parse_memory("Name:\tx\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n")
    assert (held.resident_mb, held.peak_mb) == (100.0, 200.0)


def test_a_process_without_memory_is_an_error_not_a_zero() -> None:
    with pytest.raises(KeyError):
        parse_memory("Name:\tzombie\n")


def test_a_gauge_is_found_with_and_without_labels() -> None:
    page = '# TYPE pause gauge\npause 0.001\npause{loop="b"} 0.004\npause_other 9\n'
    assert parse_gauge(page, "pause") == 0.004
    assert parse_gauge(page, "absent") is None


def test_time_of_a_thread() -> None:
    assert parse_thread_seconds("1500000000 77 12\n") == 1.5
