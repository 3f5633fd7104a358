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

from itertools import starmap

from magnetar.core.entry.compaction import Item, Removal
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

    def without(self, fate: Removal) -> None:
        """Remove all of it."""
        assert len(fate.lost) == len(self.items), "it goes as a whole"


class KeyedMessages:
    """The same for a compacted ledger."""

    __slots__ = ("_message", "is_decided", "items")

    tombstones_until_ms = -1
    notes_tombstone_time = False
    loses_some = True
    producer = None

    def __init__(self, tail: bytes) -> None:
        self._message = PulsarMessage(tail)
        self.is_decided = self._message.is_whole
        self.items = list(starmap(Item, self._message.keyed()))
        """Of what is not decided, a message with the key of the entry, if it has one."""

    def without(self, fate: Removal) -> bytes | None:
        """The batch with these messages marked; None if none is left."""
        if all(item.place in fate.lost for item in self.items):
            return None
        return self._message.without(fate.lost)
