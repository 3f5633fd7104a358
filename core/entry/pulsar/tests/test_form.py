"""What Pulsar's form answers beyond what every form promises (`core/entry/tests/test_form.py`)."""

from __future__ import annotations

import pytest

from magnetar.core.entry.pulsar import form
from magnetar.core.entry.record import Record
from magnetar.core.kernel.varints import varint
from magnetar.core.testing.entries import entry

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
