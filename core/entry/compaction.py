"""An entry as compaction sees it: its keys, and how to remove some of its messages. Pure."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

ROW: Final = struct.Struct("=4i")
"""A message: its place among the indexes of its entry, where its key begins and how many bytes it
has, -1 if there is none, and the size of its value, -1 if there is none."""


class Item(NamedTuple):
    """A message as compaction sees it."""

    place: int
    """Its place among the indexes of its entry."""
    key: bytes | None
    size: int
    """The size of its value, -1 if there is none."""


class KeyRows(NamedTuple):
    """The same messages without an object for each: compaction reads millions."""

    data: bytes
    """Has all keys."""
    rows: bytes
    """A `ROW` for each message, by ascending place."""

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.rows) // ROW.size

    @property
    def has_keyless(self) -> bool:
        """Whether a message has no key."""
        return any(size < 0 for _, _, size, _ in ROW.iter_unpack(self.rows))

    @property
    def items(self) -> list[Item]:
        data = self.data
        return [
            Item(place, None if size < 0 else data[begin : begin + size], value)
            for place, begin, size, value in ROW.iter_unpack(self.rows)
        ]


def rows_of(items: Iterable[Item]) -> KeyRows:
    """The rows of messages that are there as objects."""
    rows, keys, begin = array("i"), [], 0
    for place, key, value in items:
        if key is None:
            rows.extend((place, 0, -1, value))
        else:
            rows.extend((place, begin, len(key), value))
            keys.append(key)
            begin += len(key)
    return KeyRows(b"".join(keys), rows.tobytes())


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

    def key_rows(self) -> KeyRows:
        """Its items, as rows."""
        ...

    def without(self, fate: Removal) -> bytes | None:
        """The rest of the entry; None if nothing is left."""
        ...
