"""Where each key was last, and each producer: what the first look at a log remembers. Pure.

Keys longer than a digest are remembered by their digest, of a size that two never share. Together
they are limited: when the limit is reached, everything behind that entry stays.

Invariant: a key's index is that of its last message among all that were noted.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16
KEYS_MAX: Final = 250_000
"""About 30 MB while a log is compacted, at the worst."""
PRODUCERS_MAX: Final = 50_000


def short(key: bytes) -> bytes:
    """The key, or what stands for it."""
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
        """What has this index or a higher one is not known."""

    @property
    def full(self) -> bool:
        return len(self._keys) >= self._keys_max

    def note(self, key: bytes, index: int) -> None:
        """A message with that key; indexes come in order."""
        self._keys[short(key)] = index

    def note_producer(self, producer: Hashable, index: int) -> None:
        """A batch of that producer ends with that index."""
        if producer in self._producers or len(self._producers) < PRODUCERS_MAX:
            self._producers[producer] = index

    def is_last(self, key: bytes, index: int) -> bool:
        """Whether no later message with that key is known."""
        return index >= self.end or self._keys.get(short(key), -1) <= index

    def is_last_of(self, producer: Hashable, index: int) -> bool:
        """Whether no later batch of that producer is known."""
        return self._producers.get(producer, -1) <= index
