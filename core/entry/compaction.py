"""What compaction asks of an entry: its keys, and itself without some of its messages. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    horizon_ms: int = -1
    """From when on its tombstones may go, if that is to be noted now."""


class UnpackedEntry(Protocol):
    """An entry, taken apart."""

    @property
    def items(self) -> Sequence[Item]: ...

    @property
    def is_decided(self) -> bool:
        """It may be compacted: its messages are known, and will stay."""
        ...

    @property
    def producer_id(self) -> int:
        """Of the producer whose sequence goes on from this entry; -1 for none."""
        ...

    @property
    def horizon_ms(self) -> int:
        """From when on its tombstones may go; -1 if it does not say."""
        ...

    @property
    def notes_horizon(self) -> bool:
        """It has a place for that time."""
        ...

    @property
    def loses_some(self) -> bool:
        """Some of its messages may go while others stay."""
        ...

    def without(self, fate: Removal) -> bytes | None:
        """What is left of it; None for nothing."""
        ...
