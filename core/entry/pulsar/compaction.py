"""A Pulsar message or batch, unpacked for compaction. Pure.

For compaction in place (`UnpackedMessages`) it is removed as a whole or not at all. The format can
mark single messages of a batch as removed (`compacted_out`), but not all clients skip those: some
deliver a message without key and value for each. So a batch stays until all of its messages may be
removed. Chunks, encrypted messages, parts of transactions, and markers are never removed.

For a compacted ledger (`KeyedMessages`) single messages are marked, as by Pulsar's own compaction,
and delivery tells clients which are left (`metadata.remaining_places`). Only the partition key
counts. Of an encrypted message, which is no batch, the key and the size can be read. Chunks and
encrypted batches stay.

Invariant: unpacking raises `Corrupted` and nothing else.
"""

from __future__ import annotations

from itertools import compress, count

from magnetar.core.entry.compaction import ROW, Item, KeyRows, Removal, rows_of
from magnetar.core.entry.pulsar.batches import batch_rows, marked
from magnetar.core.entry.pulsar.messages import PulsarMessage


class UnpackedMessages:
    """An unpacked message or batch."""

    __slots__ = ("is_decided", "items")

    tombstones_until_ms = -1
    """Pulsar's metadata has no field for it."""
    notes_tombstone_time = False
    loses_some = False
    producer = None

    def __init__(self, tail: bytes) -> None:
        self.items: list[Item] = []
        message = PulsarMessage(tail)
        self.is_decided = message.is_plain
        if self.is_decided:
            self.items = [
                Item(one.place, one.key, -1 if one.value is None else len(one.value))
                for one in message.records()
            ]

    def key_rows(self) -> KeyRows:
        return rows_of(self.items)

    def without(self, fate: Removal) -> None:
        """Remove all of it."""
        assert len(fate.lost) == len(self.items), "it goes as a whole"


class KeyedMessages:
    """The same for a compacted ledger."""

    __slots__ = ("_ends", "_keys", "_message", "_payload", "is_decided")

    tombstones_until_ms = -1
    notes_tombstone_time = False
    loses_some = True
    producer = None

    def __init__(self, tail: bytes) -> None:
        """Of what is not decided, the items are a message with the key of the entry."""
        message = self._message = PulsarMessage(tail)
        self.is_decided = message.is_whole
        messages = message.batch_count
        self._payload = self._ends = b""
        if messages is None:
            self._keys = rows_of([Item(0, *message.own_key())])
        else:
            self._payload = message.plain_payload()
            rows, self._ends, data = batch_rows(self._payload, messages)
            self._keys = KeyRows(data, rows)

    @property
    def items(self) -> list[Item]:
        return self._keys.items

    def key_rows(self) -> KeyRows:
        return self._keys

    def without(self, fate: Removal) -> bytes | None:
        """The batch with these messages marked, and the places of the others noted, as
        `RawBatchConverter.rebatchMessage` of Pulsar 4.2 does; None if none is left.
        """
        lost = fate.lost
        left = bytearray(self._message.batch_count or 0)
        some = False
        for place, _, _, _ in ROW.iter_unpack(self._keys.rows):
            if place not in lost:
                some = True
                left[place] = 1
        if not some:
            return None
        payload = marked(self._payload, self._ends, bytes(left))
        return self._message.with_rest(payload, compress(count(), left))
