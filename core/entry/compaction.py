"""An entry as compaction sees it: its keys, and how to remove some of its messages. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple, Protocol


class Item(NamedTuple):
    """A message as compaction sees it."""

    place: int
    """Its place among the indexes of its entry."""
    key: bytes | None
    size: int
    """The size of its value, -1 if there is none."""


class Removal(NamedTuple):
    """The messages to remove from an entry."""

    lost: Collection[int]
    """The places of removed messages."""
    tombstones_until_ms: int = -1
    """When its tombstones may be removed, if the entry is to store that now."""


class UnpackedEntry(Protocol):
    """An unpacked entry."""

    @property
    def items(self) -> Sequence[Item]: ...

    @property
    def is_decided(self) -> bool:
        """Whether it may be compacted: its messages can be read, and are not in a transaction."""
        ...

    @property
    def producer(self) -> Hashable | None:
        """The producer whose sequence continues from this entry; None if none depends on it."""
        ...

    @property
    def tombstones_until_ms(self) -> int:
        """When its tombstones may be removed; -1 if it does not state that."""
        ...

    @property
    def notes_tombstone_time(self) -> bool:
        """Whether the form can store that time."""
        ...

    @property
    def loses_some(self) -> bool:
        """Whether single messages can be removed."""
        ...

    def without(self, fate: Removal) -> bytes | None:
        """The rest of the entry; None if nothing is left."""
        ...
