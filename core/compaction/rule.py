"""What is compacted by: which messages have a key, and which of them say that it is gone. Pure."""

from __future__ import annotations

from msgspec import Struct

from magnetar.core.entry.compaction import Item


class Rule(Struct, frozen=True):
    """What protocols see differently."""

    empty_is_gone: bool = False
    """A value without a byte says that its key is gone, as no value does."""

    def is_gone(self, item: Item) -> bool:
        """A tombstone: in time it goes too."""
        return item.size < 0 or (self.empty_is_gone and item.size == 0)
