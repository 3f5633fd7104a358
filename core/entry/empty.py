"""The form of an entry without messages, which stands where one is lost or compacted away. Pure.

Readers get it in place of entries that cannot be read (`core/ledger/read/losses.py`). It is never
stored, and belongs to no protocol: all readers pass it, whatever form they expect. Kafka's readers
see a gap in the offsets, as after compaction; Pulsar's subscriptions count it as acknowledged
(`OpReadEntry.java` of 4.2 skips them if `autoSkipNonRecoverableData` is set).

See `core/entry/form.py` for what each function means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.entry.compaction import Item, KeyRows, Removal, rows_of
from magnetar.core.entry.form import Chunk, TransactionMark
from magnetar.core.entry.record import DetailedRecord, Record

NAME: Final = "empty"
EMPTY: Final = bytes(4)
"""The entry: metadata of no size. No producer sends that, since Pulsar's metadata has required
fields (`MessageMetadata` of PulsarApi)."""


def publish_time(_sent: bytes) -> int:
    return 0


def latest_time(_sent: bytes) -> int:
    return -1


def deliver_at(_sent: bytes) -> int | None:
    return None


def ordering_key(_sent: bytes) -> bytes | None:
    return None


def sequence(_sent: bytes) -> tuple[bytes, int] | None:
    return None


def chunk(_sent: bytes) -> Chunk | None:
    return None


def remaining_places(_sent: bytes) -> Sequence[int]:
    return ()


def transaction_mark(_sent: bytes) -> TransactionMark | None:
    return None


def records(_sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[Record]:
    return ()


def messages(_sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[DetailedRecord]:
    return ()


def entry_of(
    records: Sequence[Record], _index: int, _publish_time_ms: int, _producer: str
) -> bytes:
    assert not records, "it holds none"
    return EMPTY


class UnpackedEmpty:
    """An empty entry, which compaction removes."""

    items: tuple[Item, ...] = ()
    is_decided = loses_some = True
    producer = None
    tombstones_until_ms = -1
    notes_tombstone_time = False

    def key_rows(self) -> KeyRows:
        return rows_of(self.items)

    def without(self, _removal: Removal) -> bytes | None:
        return None


def unpacked(_sent: bytes) -> UnpackedEmpty:
    return UnpackedEmpty()


keyed = unpacked
