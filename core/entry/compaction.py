"""What compaction asks of an entry: its keys, and itself without some of its messages. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple, Protocol


class Item(NamedTuple):
    """One message, as far as compaction looks at it."""

    place: int
    """Among the indexes of its entry."""
    key: bytes | None
    size: int
    """Of its value, -1 if there is none."""


class Removal(NamedTuple):
    """What becomes of an entry."""

    lost: Collection[int]
    """The places of messages that go."""
    tombstones_until_ms: int = -1
    """When its tombstones may be removed, if the entry is to store that now."""


class UnpackedEntry(Protocol):
    """An entry, taken apart."""

    @property
    def items(self) -> Sequence[Item]: ...

    @property
    def is_decided(self) -> bool:
        """It may be compacted: its messages are known, and will stay."""
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
        """Some of its messages may go while others stay."""
        ...

    def without(self, fate: Removal) -> bytes | None:
        """What is left of it; None for nothing."""
        ...
