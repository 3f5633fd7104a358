"""What a compacted ledger has of an entry."""

from __future__ import annotations

import pytest

from magnetar.core.compaction import value_rule
from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.retention_rule import TransactionOutcome
from magnetar.core.compaction.value_rule import FORMER, ValueRule, keyed, note
from magnetar.core.entry import header
from magnetar.core.entry.conversion import records_of
from magnetar.core.testing.entries import batch, entry

HOLDS = TransactionOutcome.HOLDS


def stored(sent: bytes, count: int = 1) -> bytes:
    (head,) = header.headers(1, [count], 1, 0)
    return head + sent


def rule_of(*entries: bytes, retains_keyless: bool = False) -> ValueRule:
    """The rule when the log has these entries."""
    latest = Latest()
    for number, one in enumerate(entries):
        found = keyed(one)
        if found is not None and found.is_decided:
            note(latest, found.key_rows(), number)
    return ValueRule(latest, latest.orders(), retains_keyless=retains_keyless)


def left(rule: ValueRule, entry: bytes, number: int) -> list[tuple[int, bytes | None]] | None:
    found = rule.left_of(entry, number, HOLDS)
    if found is None:
        return None
    records = records_of(found[header.read(found).size :])
    return [(one.place, one.key) for one in records]


def test_the_last_of_each_key() -> None:
    one = stored(batch([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (None, b"4")]), 4)
    two = stored(entry(b"5", key=b"b"))
    rule = rule_of(one, two)
    assert left(rule, one, 0) == [(2, b"a")]
    assert left(rule, two, 1) == [(0, b"b")]
    assert rule.removed == 3


@pytest.mark.parametrize("value", [b"", None])
def test_tombstones(value: bytes | None) -> None:
    former, new = stored(entry(b"1", key=b"a")), stored(batch([(b"a", value), (b"b", b"1")]), 2)
    rule = rule_of(new)
    assert left(rule, former, FORMER) is None
    assert left(rule, new, 0) == [(1, b"b")]


def test_without_a_key() -> None:
    one = stored(batch([(None, b"1"), (b"a", b"2"), (b"a", b"3")]), 3)
    assert left(rule_of(one, retains_keyless=True), one, 0) == [(0, None), (2, b"a")]
    assert left(rule_of(one), one, 0) == [(2, b"a")]


def test_what_is_whole_stays_as_it_is() -> None:
    one = stored(batch([(b"a", b"1"), (b"b", b"2")]), 2)
    assert rule_of(one).left_of(one, 0, HOLDS) is one


def test_transactions() -> None:
    one = stored(entry(b"1", key=b"a"))
    rule = rule_of(one)
    for outcome in (TransactionOutcome.VOID, TransactionOutcome.MARKER):
        assert rule.left_of(one, 0, outcome) is None


def test_damage_stays_and_so_do_all_tombstones() -> None:
    damaged, gone = stored(b"\x00\x00\x00\x09x"), stored(entry(b"", key=b"a"))
    rule = rule_of(damaged, gone)
    assert rule.left_of(damaged, 0, HOLDS) is damaged
    assert rule.left_of(gone, 1, HOLDS) is gone


def test_too_many_keys_that_may_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = stored(entry(b"1", key=b"a", chunk=(b"u", 0, 2)))
    one, other = stored(entry(b"", key=b"a")), stored(entry(b"", key=b"b"))
    rule = rule_of(chunk, one, other)
    rule.left_of(chunk, 0, HOLDS)
    assert rule.left_of(one, 1, HOLDS) is one
    assert rule.left_of(other, 2, HOLDS) is None
    monkeypatch.setattr(value_rule, "PINNED_MAX", 0)
    rule.left_of(chunk, 0, HOLDS)
    assert rule.left_of(other, 2, HOLDS) is other
