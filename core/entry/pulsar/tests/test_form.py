"""What Pulsar's form answers beyond what every form promises (`core/entry/tests/test_form.py`)."""

from __future__ import annotations

import pytest

from magnetar.core.entry.form import MarkKind, TransactionMark
from magnetar.core.entry.pulsar import form
from magnetar.core.entry.record import Record
from magnetar.core.kernel.varints import varint
from magnetar.core.testing.entries import entry, part

EVENT_TIME = 12
MARKER_TYPE = 20


def with_number(sent: bytes, field: int, value: int) -> bytes:
    """The message, without its checksum, and with one more field of its metadata."""
    size = 10 + int.from_bytes(sent[6:10], "big")
    metadata = sent[10:size] + varint(field << 3) + varint(value)
    return len(metadata).to_bytes(4, "big") + metadata + sent[size:]


@pytest.mark.parametrize(
    ("published_ms", "event_ms", "latest"), [(77, 0, 77), (77, 5, 5), (0, 0, -1)]
)
def test_the_event_time_comes_before_the_publish_time(
    published_ms: int, event_ms: int, latest: int
) -> None:
    sent = with_number(entry(b"value", published_ms=published_ms), EVENT_TIME, event_ms)
    assert form.latest_time(sent) == latest


def test_a_marker_holds_no_record() -> None:
    """Replication and transactions write them for brokers alone (`Markers.java` of 4.1)."""
    sent = entry(b"value")
    assert form.records(sent) != ()
    assert form.records(with_number(sent, MARKER_TYPE, 21)) == ()


def test_the_chunks_of_a_message_become_one_record() -> None:
    parts = [entry(b"one "), entry(b"two "), entry(b"three", key=b"k", published_ms=9)]
    assert form.records(parts[-1], parts[:-1]) == [Record(0, 9, b"k", b"one two three")]


@pytest.mark.parametrize("committed", [True, False])
def test_markers_end_what_they_name(committed: bool) -> None:
    key = (3, (1 << 64) - 1)
    made = form.marker(key, 0, 77, committed=committed)
    kind = MarkKind.COMMIT if committed else MarkKind.ABORT
    assert form.transaction_mark(made) == TransactionMark(key, kind)
    assert form.publish_time(made) == 77
    assert form.records(made) == ()


def test_messages_belong_to_what_they_name() -> None:
    assert form.transaction_mark(entry(b"\xb0\x01\xb8\x01")) is None
    assert form.transaction_mark(part((0, 7))) == TransactionMark((0, 7), MarkKind.PART)
    half = with_number(entry(b"x"), 23, 1)
    assert form.transaction_mark(half) is None
