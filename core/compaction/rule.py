"""The definition of a tombstone, which protocols define differently. Pure."""

from __future__ import annotations

from msgspec import Struct

from magnetar.core.entry.compaction import Item


class Rule(Struct, frozen=True):
    """Which messages delete their key."""

    empty_is_gone: bool = False
    """An empty value deletes its key, as in Pulsar (`RawBatchConverter.java`); in Kafka only a null
    value does."""

    def is_gone(self, item: Item) -> bool:
        """Whether the message is a tombstone."""
        return item.size < 0 or (self.empty_is_gone and item.size == 0)
