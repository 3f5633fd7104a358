"""Sequence ids: what is stored, on its way, or new; in memory that has an end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.testing.entries import entry
from magnetar.core.topic.publishing import sequences as sequences_module
from magnetar.core.topic.publishing.sequences import ProducerSequences, Verdict, counts

NEW, DUPLICATE, UNKNOWN = Verdict.NEW, Verdict.DUPLICATE, Verdict.UNKNOWN


def numbered(sequence_id: int, **fields: object) -> bytes:
    """A message of producer `p`."""
    return entry(sequence_id=sequence_id, **fields)  # type: ignore[arg-type]  # by name


def test_what_is_on_its_way_is_unknown_until_it_is_stored_or_fails() -> None:
    sequences = ProducerSequences()
    sequences.push("p", 3)
    assert [sequences.judge("p", each) for each in (3, 4)] == [UNKNOWN, NEW]
    sequences.store("p", 2)
    sequences.fail("p")
    assert [sequences.judge("p", each) for each in (2, 3)] == [DUPLICATE, NEW]
    sequences.push("q", 0)
    sequences.fail("q")
    assert sequences.judge("q", 0) is NEW


def test_entries_are_applied_as_their_producers_numbered_them() -> None:
    sequences = ProducerSequences()
    for sent in (
        numbered(5),
        numbered(9, chunk=(b"u", 0, 2)),
        form.wrapped(record_batch.marker(7, 0, 1, committed=True), 1, 1),
        b"nothing that anybody can read",
    ):
        sequences.apply(sent, 0, (0, 0), 0)
    assert sequences.snapshot() == {"p": 5}


def test_only_the_last_part_of_a_large_message_counts() -> None:
    assert counts(numbered(1))
    assert [counts(numbered(1, chunk=(b"u", at, 3))) for at in range(3)] == [False, False, True]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5))))
def test_no_verdict_is_wrong(sent: list[tuple[str, int]]) -> None:
    """Each message is stored at once where it is new."""
    sequences, stored = ProducerSequences(), set()
    for name, sequence_id in sent:
        verdict = sequences.judge(name, sequence_id)
        later = any(known >= sequence_id for other, known in stored if other == name)
        assert verdict is (DUPLICATE if later else NEW)
        if verdict is NEW:
            sequences.push(name, sequence_id)
            sequences.store(name, sequence_id)
            stored.add((name, sequence_id))


def test_names_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences_module, "NAMES_MAX", 3)
    sequences = ProducerSequences()
    for name in ("a", "b", "a", "c", "d"):
        sequences.push(name, 1)
        sequences.store(name, 1)
    assert list(sequences.stored) == ["a", "c", "d"], "whoever was not heard longest is forgotten"
    assert len(sequences.pushed) == 3
