"""Parts of large messages are counted, and small messages are not looked at."""

import pytest

from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.testing.entries import entry
from magnetar.core.topic.subscription import chunk_counts
from magnetar.core.topic.subscription.chunk_counts import MEAN_BYTES_MIN, ChunksOut


def noted(counted: ChunksOut, *payloads: bytes, counts: list[int] | None = None) -> int:
    counted.note(Slice(0, 0, list(payloads), counts), sum(map(len, payloads)))
    return counted.count


def part(number: int, size: int = MEAN_BYTES_MIN) -> bytes:
    """One of three."""
    return entry(bytes(size), chunk=(b"u", number, 3))


def test_parts_are_counted_a_small_last_one_as_well() -> None:
    counted = ChunksOut()
    assert noted(counted, part(0)) == 1
    assert noted(counted, part(1)) == 2
    assert noted(counted, entry(b"x"), part(2, 10)) == 3
    assert noted(counted, part(2, 10)) == 3, "nothing large has come since"


def test_large_messages_that_are_whole_are_none_of_it() -> None:
    assert noted(ChunksOut(), entry(bytes(MEAN_BYTES_MIN)), entry(bytes(MEAN_BYTES_MIN))) == 0


def test_a_batch_is_never_a_part() -> None:
    assert noted(ChunksOut(), part(0), counts=[2]) == 0


def test_small_messages_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_counts, "NATIVE", None)
    assert noted(ChunksOut(), *[entry(bytes(100))] * 1_000) == 0
