"""Where keys and producers were last."""

import pytest

from magnetar.core.compaction import latest
from magnetar.core.compaction.latest import Latest, short
from magnetar.core.entry.compaction import Item


def test_keys() -> None:
    seen = Latest()
    for index, key in enumerate([b"a", b"b", b"a", b"x" * 100]):
        seen.note(key, index)
    seen.end = 4
    assert [seen.is_last(b"a", index) for index in range(4)] == [False, False, True, True]
    assert seen.is_last(b"b", 1)
    assert not seen.is_last(b"x" * 100, 2)
    assert seen.is_last(b"x" * 99, 0), "never seen: nothing is known against it"
    assert seen.is_last(b"a", 4)


def test_what_is_behind_the_end_stays() -> None:
    seen = Latest()
    seen.note(b"a", 9)
    seen.end = 5
    assert [seen.is_last(b"a", index) for index in (4, 5)] == [False, True]


def test_the_limit() -> None:
    seen = Latest(2)
    seen.note(b"a", 0)
    assert not seen.full
    seen.note(b"b", 1)
    assert seen.full


def test_keys_are_forgotten_a_few_at_a_time() -> None:
    seen = Latest()
    seen.end = 9
    seen.note_items([Item(0, b"a", 1), Item(1, None, 1), Item(2, b"b" * 20, 1)], 4)
    assert list(seen.orders()) == [4, 6]
    assert [seen.is_last(b"b" * 20, index) for index in (5, 6)] == [False, True]
    assert seen.forget(1)
    assert not seen.forget(9)
    assert seen.is_last(b"a", 0)


def test_long_keys_are_short() -> None:
    keys = [b"", b"a" * 15, b"a" * 16, b"a" * 17, short(b"a" * 16)]
    assert [len(short(key)) for key in keys] == [0, 15, 15, 15, 15]
    assert len({short(key) for key in keys}) == len(keys)


def test_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "PRODUCERS_MAX", 1)
    seen = Latest()
    seen.note_producer(7, 3)
    seen.note_producer(7, 5)
    seen.note_producer(8, 6)
    assert [seen.is_last_of(7, index) for index in (3, 5)] == [False, True]
    assert seen.is_last_of(8, 0), "too many to know"
