"""The oldest goes first."""

from magnetar.core.schema.limited_cache import LimitedCache


def test_the_oldest_goes_first() -> None:
    cache: LimitedCache[str, int] = LimitedCache(10)
    for number, key in enumerate("abc"):
        cache.keep(key, number, 4)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, 1, 2)
    assert cache.weight == 8


def test_kept_again() -> None:
    cache: LimitedCache[str, int] = LimitedCache(10)
    cache.keep("a", 1, 9)
    cache.keep("a", 2, 3)
    assert (cache.get("a"), cache.weight) == (2, 3)


def test_what_is_too_heavy_replaces_nothing() -> None:
    cache: LimitedCache[str, int] = LimitedCache(10)
    cache.keep("a", 1, 5)
    cache.keep("b", 2, 11)
    assert (cache.get("a"), cache.get("b")) == (1, None)


def test_dropped() -> None:
    cache: LimitedCache[str, int] = LimitedCache(10)
    cache.keep("a", 1, 5)
    cache.drop("a")
    cache.drop("a")
    assert (cache.get("a"), cache.weight) == (None, 0)
    cache.keep("b", 1, 5)
    cache.clear()
    assert (cache.get("b"), cache.weight) == (None, 0)
