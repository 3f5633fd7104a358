"""Heartbeats that say everything, and others."""

from wire.kafka.groups.consumer.words import Beat


def test_who_says_everything_hears_everything() -> None:
    assert Beat("m", 0).is_full
    assert Beat("m", 1, None, None, 1.0, frozenset(), owned=frozenset()).is_full
    assert Beat("m", 1, None, None, 1.0, None, "a*", owned=frozenset()).is_full
    assert not Beat("m", 1, None, None, 1.0, frozenset()).is_full
    assert not Beat("m", 1, None, None, None, frozenset(), owned=frozenset()).is_full
    assert not Beat("m", 1, None, None, 1.0, owned=frozenset()).is_full
