"""The table at the head of `retention_rule.py`, and what stands below it."""

from __future__ import annotations

import pytest

from magnetar.core.compaction import retention_rule as judging
from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.retention_rule import (
    PRODUCER_KEPT_MS,
    RetentionRule,
    Terms,
    TransactionOutcome,
    outcome_of,
    unpacked,
)
from magnetar.core.compaction.rule import Rule
from magnetar.core.compaction.tests.histories import batch, wrapped
from magnetar.core.entry import conversion, header
from magnetar.core.entry.kafka import form
from magnetar.core.entry.kafka.compaction import UnpackedBatch
from magnetar.core.entry.kafka.record_batch import CONTROL, TRANSACTIONAL
from magnetar.core.entry.pulsar import messages
from magnetar.core.entry.record import Record
from magnetar.core.testing.entries import entry

NOW = 10 * PRODUCER_KEPT_MS
RETENTION = 1000


def stored(tail: bytes, index: int, count: int = 1, time_ms: int = NOW) -> bytes:
    """An entry whose first message has that index."""
    (head,) = header.headers(1, [count], time_ms, index)
    return head + tail


def latest(*keys: bytes, end: int = 100) -> Latest:
    """These were last at the places where they stand."""
    made = Latest()
    for index, key in enumerate(keys):
        made.note(key, index)
    made.end = end
    return made


def rule(known: Latest, now_ms: int = NOW, clean_to: int = 0) -> RetentionRule:
    return RetentionRule(known, Terms(Rule(), now_ms, RETENTION, clean_to))


def left_of(
    rule_used: RetentionRule, entry: bytes, became: TransactionOutcome = TransactionOutcome.OPEN
) -> bytes | None:
    """What is left of an entry; transactions became that."""
    return rule_used.left_of(entry, outcome_of(entry, lambda _writer, _index: became))


def keys_in(left: bytes | None) -> list[bytes | None]:
    assert left is not None
    return [one.key for one in conversion.records_of(left[header.read(left).size :])]


def test_only_the_last_stays() -> None:
    known = latest(b"a", b"b", b"a")
    both = stored(wrapped(batch([(b"a", b"1"), (b"b", b"1")])), 0, 2)
    assert keys_in(left_of(rule(known), both)) == [b"b"]
    last = stored(wrapped(batch([(b"a", b"1")])), 2)
    assert left_of(rule(known), last) is last
    assert left_of(rule(latest(b"a", b"a")), stored(wrapped(batch([(b"a", b"")])), 0)) is None
    assert left_of(rule(known), stored(entry(b"v", key=b"a"), 1)) is None
    keyless = stored(entry(b"v"), 1)
    assert left_of(rule(known), keyless) is keyless


def test_what_is_not_known_stays() -> None:
    late = stored(wrapped(batch([(b"a", None)])), 7)
    assert left_of(rule(latest(b"a", end=7)), late) is late


def test_tombstones_note_their_time_and_go_when_it_has_come() -> None:
    known = latest(b"b", b"a")
    first = left_of(rule(known), stored(wrapped(batch([(b"b", b"x"), (b"a", None)])), 0, 2))
    assert first is not None
    batch_in = form.batch_in(first[header.read(first).size :])
    assert UnpackedBatch(batch_in or b"", 0).tombstones_until_ms == NOW + RETENTION
    assert left_of(rule(known, NOW + RETENTION - 1), first) is first
    assert keys_in(left_of(rule(known, NOW + RETENTION), first)) == [b"b"]


def test_tombstones_of_pulsars_go_when_they_were_there_for_long() -> None:
    gone = bytes.fromhex("0a017010001801 3201 61 c80101".replace(" ", ""))
    tail = len(gone).to_bytes(4, "big") + gone
    old = stored(tail, 3, time_ms=NOW - RETENTION)
    known = latest(b"x", b"x", b"x", b"a")
    assert unpacked(old) is not None
    assert left_of(rule(known, clean_to=4), old) is None
    assert left_of(rule(known, clean_to=3), old) is old, "it has been through no compaction"
    assert left_of(rule(known, NOW - 1, clean_to=4), old) is old


@pytest.mark.parametrize(
    ("tail", "pinned"),
    [
        (wrapped(batch([(b"a", b"1")], attributes=TRANSACTIONAL)), True),
        (wrapped(batch([(b"b", b"1")], attributes=TRANSACTIONAL)), False),
        (wrapped(batch([(b"b", b"1")]))[:-2], True),
        (entry(b"part", key=b"b", chunk=(b"u", 0, 2)), True),
    ],
    ids=["same key", "another key", "torn", "part"],
)
def test_tombstones_stay_for_what_is_left_as_it_is(tail: bytes, pinned: bool) -> None:
    rule_used = rule(latest(b"x", b"a"), NOW + RETENTION)
    left_alone = stored(tail, 0)
    assert left_of(rule_used, left_alone) is left_alone
    tombstone = left_of(rule(latest(b"x", b"a")), stored(wrapped(batch([(b"a", None)])), 1))
    assert tombstone is not None
    assert (left_of(rule_used, tombstone) is tombstone) is pinned


def test_too_many_keys_that_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "PINNED_MAX", 1)
    rule_used = rule(latest(b"x", b"x", b"a"), NOW + RETENTION)
    left_of(
        rule_used, stored(wrapped(batch([(b"b", b""), (b"c", b"")], attributes=TRANSACTIONAL)), 0)
    )
    tombstone = left_of(rule(latest(b"x", b"x", b"a")), stored(wrapped(batch([(b"a", None)])), 2))
    assert tombstone is not None
    assert left_of(rule_used, tombstone) is tombstone


def test_the_last_batch_of_a_producer_leaves_its_header() -> None:
    known = latest(b"a", b"a", b"a")
    known.note_producer(7, 1)
    tail = wrapped(batch([(b"a", b"1")], producer_id=7))
    assert left_of(rule(known), stored(tail, 0)) is None, "there is a later one"
    left = left_of(rule(known), stored(tail, 1))
    assert keys_in(left) == []
    assert left is not None
    assert left_of(rule(known), left) is left
    assert left_of(rule(known, NOW + PRODUCER_KEPT_MS), left) is None
    known.note_producer(7, 5)
    assert left_of(rule(known), left) is None


def test_who_claims_others_indexes_is_not_heard() -> None:
    assert unpacked(stored(wrapped(batch([(b"a", b"1"), (b"b", b"1")])), 0, 2)) is not None
    assert unpacked(stored(wrapped(batch([(b"a", b"1"), (b"b", b"1")])), 0, 1)) is None


def test_what_can_only_go_as_a_whole() -> None:
    """It stays for one of its messages, and with it what deletes the others."""
    records = [Record(0, 1, b"a", b"old"), Record(1, 1, b"b", b"x")]
    both = stored(messages.batch_of(records, 3, 1, "kafka"), 0, 2)
    for keys, stays in (((b"x", b"b", b"a"), True), ((b"x", b"x", b"a", b"b"), False)):
        rule_used = rule(latest(*keys), NOW + RETENTION)
        assert (left_of(rule_used, both) is both) is stays
        tombstone = left_of(rule(latest(*keys)), stored(wrapped(batch([(b"a", None)])), 2))
        assert tombstone is not None
        assert (left_of(rule_used, tombstone) is tombstone) is stays


def test_transactions() -> None:
    known = latest(b"a", b"x", b"x", b"a")
    written = stored(wrapped(batch([(b"a", b"1")], attributes=TRANSACTIONAL)), 0)
    last = stored(wrapped(batch([(b"a", b"1")], attributes=TRANSACTIONAL)), 3)
    assert left_of(rule(known), written, TransactionOutcome.OPEN) is written
    assert left_of(rule(known), written, TransactionOutcome.HOLDS) is None
    assert left_of(rule(known), last, TransactionOutcome.HOLDS) is last
    assert left_of(rule(known), last, TransactionOutcome.VOID) is None


def test_markers_stay_and_hold_nothing() -> None:
    rule_used = rule(latest(b"x", b"a"), NOW + RETENTION)
    marker = stored(wrapped(batch([(b"", b"")], attributes=TRANSACTIONAL | CONTROL)), 0)
    assert left_of(rule_used, marker, TransactionOutcome.VOID) is marker
    tombstone = left_of(rule(latest(b"x", b"a")), stored(wrapped(batch([(b"a", None)])), 1))
    assert tombstone is not None
    assert left_of(rule_used, tombstone) is None


def test_standings() -> None:
    seen: list[tuple[int, int]] = []

    def outcome(writer: int, index: int) -> TransactionOutcome:
        seen.append((writer, index))
        return TransactionOutcome.VOID

    part = stored(wrapped(batch([(b"a", b"")], attributes=TRANSACTIONAL, producer_id=9)), 4)
    assert outcome_of(part, outcome) is TransactionOutcome.VOID
    assert seen == [(9, 4)]
    for tail, expected in (
        (wrapped(batch([(b"a", b"")])), TransactionOutcome.HOLDS),
        (entry(b"v"), TransactionOutcome.HOLDS),
        (wrapped(batch([(b"a", b"")]))[:80], TransactionOutcome.OPEN),
    ):
        assert outcome_of(stored(tail, 0), outcome) is expected
