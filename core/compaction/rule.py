"""What is compacted by: which messages have a key, and which of them say that it is gone. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec import Struct


class Item(NamedTuple):
    """One message of an entry, as far as compaction looks at it."""

    place: int
    """Among the indexes of its entry."""
    key: bytes | None
    size: int
    """Of its value, -1 if there is none."""


class Rule(Struct, frozen=True):
    """What protocols see differently."""

    empty_is_gone: bool = False
    """A value without a byte says that its key is gone, as no value does."""

    def is_gone(self, item: Item) -> bool:
        """A tombstone: in time it goes too."""
        return item.size < 0 or (self.empty_is_gone and item.size == 0)


KAFKA: Final = Rule()


class Fate(NamedTuple):
    """What is to become of an entry."""

    lost: Collection[int]
    """The places of messages that go."""
    horizon_ms: int = -1
    """From when on its tombstones may go, if that is to be noted now."""
