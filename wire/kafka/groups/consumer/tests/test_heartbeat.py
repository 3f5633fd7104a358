"""Heartbeats that say everything, and others; topics and partitions by their names."""

from magnetar.wire.kafka.groups.consumer.heartbeat import Heartbeat, Topics, by_topic


def test_who_says_everything_hears_everything() -> None:
    assert Heartbeat("m", 0).is_full
    assert Heartbeat("m", 1, None, None, 1.0, frozenset(), owned=frozenset()).is_full
    assert Heartbeat("m", 1, None, None, 1.0, None, "a*", owned=frozenset()).is_full
    assert not Heartbeat("m", 1, None, None, 1.0, frozenset()).is_full
    assert not Heartbeat("m", 1, None, None, None, frozenset(), owned=frozenset()).is_full
    assert not Heartbeat("m", 1, None, None, 1.0, owned=frozenset()).is_full


def test_topics_by_name_and_by_id() -> None:
    topics = Topics({"a": b"1", "b": b"2"})
    assert topics.ids_of(["b", "unknown"]) == {b"2"}
    assert topics.names == {b"1": "a", b"2": "b"}


def test_partitions_by_topic() -> None:
    found = by_topic({(b"2", 1), (b"1", 10), (b"2", 0), (b"1", 9)})
    assert list(found.items()) == [(b"1", [9, 10]), (b"2", [0, 1])]
