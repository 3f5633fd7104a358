"""The index of the last message of each key, and of the last batch of each producer. Pure.

The first pass over a log builds it, as Kafka's `SkimpyOffsetMap` does. Of keys only hashes are
stored (`key_index.py`). The number of keys is limited; when it is reached, later entries are left
to the next pass.

Invariant: the index of a key is that of its last noted message.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from typing import Final

from magnetar.core.compaction.key_index import SEED_BYTES, new_key_index
from magnetar.core.entry.compaction import KeyRows

KEYS_MAX: Final = 250_000
"""At most about 30 MB during a compaction."""
PRODUCERS_MAX: Final = 50_000


class Latest:
    """See the module's docstring."""

    __slots__ = ("_keys", "_keys_max", "_producers", "end")

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys = new_key_index(secrets.token_bytes(SEED_BYTES))
        self._producers: dict[Hashable, int] = {}
        self._keys_max = keys_max
        self.end = 0
        """Messages from this index on are not noted."""

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._keys)

    @property
    def full(self) -> bool:
        return len(self._keys) >= self._keys_max

    def has_room(self, messages: int) -> bool:
        """Whether so many new keys may be noted; those of one entry always may."""
        known = len(self._keys)
        return not known or known + messages <= self._keys_max

    def note(self, key: bytes, index: int) -> None:
        """Note a message with that key; indexes ascend."""
        self._keys.note(key, index)

    def note_rows(self, keys: KeyRows, base: int, last_place: int) -> None:
        """Note the messages of an entry that have keys; `base` is the index of place 0, and places
        after the last one count as that.
        """
        self._keys.note_rows(keys, base, last_place)

    def unknown(self, keys: KeyRows) -> bytearray:
        """What is known of the messages of an entry before all that was noted."""
        return self._keys.unknown(keys)

    def orders(self) -> bytes:
        """The index of the last message of each key, ascending (`KeyIndex.orders`)."""
        return self._keys.orders()

    def forget(self, count: int) -> bool:
        """Forget so many keys; returns whether there are more."""
        return self._keys.forget(count)

    def note_producer(self, producer: Hashable, index: int) -> None:
        """Note a producer's batch by the index of its last message."""
        if producer in self._producers or len(self._producers) < PRODUCERS_MAX:
            self._producers[producer] = index

    def is_last(self, key: bytes, index: int) -> bool:
        """Whether no later message with that key was noted."""
        return index >= self.end or self._keys.order_of(key) <= index

    def is_last_of(self, producer: Hashable, index: int) -> bool:
        """Whether this is the producer's latest batch."""
        return self._producers.get(producer, -1) <= index
