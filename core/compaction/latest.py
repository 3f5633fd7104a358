"""The index of the last message of each key, and of the last batch of each producer. Pure.

The first pass over a log builds it, as Kafka's `SkimpyOffsetMap` does. Keys longer than a digest
are stored as digests of 120 bits, whose collisions are neglected (Kafka's map uses MD5). The number
of keys is limited; when it is reached, later entries are left to the next pass.

Invariant: the index of a key is that of its last noted message.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from hashlib import blake2b
from typing import Final

from magnetar.core.entry.compaction import Item

DIGEST_BYTES: Final = 15
"""So that a digest takes 48 bytes of memory; one byte more takes 64."""
KEYS_MAX: Final = 250_000
"""At most about 30 MB during a compaction."""
PRODUCERS_MAX: Final = 50_000


def short(key: bytes) -> bytes:
    """The key, or the digest of a long one."""
    if len(key) < DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


class Latest:
    """See the module's docstring."""

    __slots__ = ("_keys", "_keys_max", "_producers", "end")

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys: dict[bytes, int] = {}
        self._producers: dict[Hashable, int] = {}
        self._keys_max = keys_max
        self.end = 0
        """Messages from this index on are not noted."""

    @property
    def full(self) -> bool:
        return len(self._keys) >= self._keys_max

    def note(self, key: bytes, index: int) -> None:
        """Note a message with that key; indexes ascend."""
        self._keys[short(key)] = index

    def note_items(self, items: Iterable[Item], base: int) -> None:
        """Note the messages of an entry that have keys; `base` is the index before its places."""
        keys = self._keys
        for place, key, _ in items:
            if key is not None:
                keys[key if len(key) < DIGEST_BYTES else short(key)] = base + place

    def orders(self) -> Iterable[int]:
        """The index of the last message of each key."""
        return self._keys.values()

    def forget(self, count: int) -> bool:
        """Forget so many keys; returns whether there are more."""
        keys = self._keys
        for _ in range(min(count, len(keys))):
            keys.popitem()
        return bool(keys)

    def note_producer(self, producer: Hashable, index: int) -> None:
        """Note a producer's batch by the index of its last message."""
        if producer in self._producers or len(self._producers) < PRODUCERS_MAX:
            self._producers[producer] = index

    def is_last(self, key: bytes, index: int) -> bool:
        """Whether no later message with that key was noted."""
        return index >= self.end or self._keys.get(short(key), -1) <= index

    def is_last_of(self, producer: Hashable, index: int) -> bool:
        """Whether this is the producer's latest batch."""
        return self._producers.get(producer, -1) <= index
