"""Where keys and producers were last."""

import pytest

from magnetar.core.compaction import latest
from magnetar.core.compaction.key_index import KEYLESS, LOST
from magnetar.core.compaction.latest import Latest
from magnetar.core.entry.compaction import Item, rows_of


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


def test_what_one_entry_has_is_always_noted() -> None:
    seen = Latest(2)
    assert seen.has_room(9)
    seen.note(b"a", 0)
    assert [seen.has_room(count) for count in (1, 2)] == [True, False]


def test_keys_are_forgotten() -> None:
    seen = Latest()
    seen.end = 9
    keys = rows_of([Item(0, b"a", 1), Item(1, None, 1), Item(2, b"b" * 20, 1)])
    seen.note_rows(keys, 4, 9)
    assert list(memoryview(seen.orders()).cast("Q")) == [4, 6]
    assert list(seen.unknown(keys)) == [LOST, KEYLESS, LOST]
    assert [seen.is_last(b"b" * 20, index) for index in (5, 6)] == [False, True]
    while seen.forget(1):
        pass
    assert seen.is_last(b"a", 0)
    assert not seen.orders()


def test_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "PRODUCERS_MAX", 1)
    seen = Latest()
    seen.note_producer(7, 3)
    seen.note_producer(7, 5)
    seen.note_producer(8, 6)
    assert [seen.is_last_of(7, index) for index in (3, 5)] == [False, True]
    assert seen.is_last_of(8, 0), "too many to know"
