"""The memory for blocks of delayed entries, of all logs together.

A log holds blocks that are not stored yet, and buckets that it has read. Either may be let go of at
any time: then entries are read for whose sake they were there, or the bucket is read again. So who
has not used them for the longest lets go first.

What is being loaded or stored is not counted, and a few logs do that at a time.

Invariant: `blocks` is the sum of what all have told.
"""

from __future__ import annotations

from typing import Final, Protocol

import trio

BLOCKS_MAX: Final = 4_096
"""Of 4 KB each."""
AT_ONCE: Final = 8
"""Logs that load, and that store: half a thousand blocks each at most that are not counted yet."""


class BlockHolder(Protocol):
    """Whoever holds blocks, of several kinds or buckets."""

    def let_go(self, what: int) -> None:
        """Hold none of these any more."""
        ...


class IndexMemory:
    """See the module's docstring."""

    def __init__(self, blocks_max: int = BLOCKS_MAX) -> None:
        self.loads, self.stores = trio.Semaphore(AT_ONCE), trio.Semaphore(AT_ONCE)
        self.blocks = 0
        self._blocks_max = blocks_max
        self._held: dict[tuple[BlockHolder, int], int] = {}
        """How many, by who holds them and what they are; those used last are at the end."""

    def holds(self, who: BlockHolder, what: int, blocks: int) -> None:
        """It holds so many of these now. Plain call, in which others may let go."""
        key = who, what
        self.blocks += blocks - self._held.pop(key, 0)
        if blocks:
            self._held[key] = blocks
        while self.blocks > self._blocks_max:
            oldest = next(iter(self._held))
            if oldest == key:
                return
            self.blocks -= self._held.pop(oldest)
            oldest[0].let_go(oldest[1])

    def used(self, who: BlockHolder, what: int) -> None:
        """It will be needed again."""
        held = self._held.pop((who, what), 0)
        if held:
            self._held[who, what] = held
