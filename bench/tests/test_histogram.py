from bench.drive.histogram import merge, quantile_ms


def test_rounds_are_joined_by_adding_counts() -> None:
    assert merge([[(10, 1), (20, 2)], [(20, 3), (5, 1)]]) == [(5, 1), (10, 1), (20, 5)]


def test_a_quantile_is_the_bucket_that_holds_the_wanted_sample() -> None:
    buckets = [(1_000_000, 98), (2_000_000, 1), (9_000_000, 1)]
    assert quantile_ms(buckets, 0.5) == 1.0
    assert quantile_ms(buckets, 0.98) == 2.0
    assert quantile_ms(buckets, 0.99) == 9.0
    assert quantile_ms(buckets, 1.0) == 9.0


def test_an_empty_histogram_has_no_quantile() -> None:
    assert quantile_ms([], 0.5) == 0.0
