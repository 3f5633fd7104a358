"""The memory limit of all HTTP clients together: for request bodies and for answers.

HTTP is for administration: its bodies and most answers are small, and small ones are not counted.
Larger ones are admitted up to the limit; beyond it a request gets 503 and may be retried. So
clients that stop in the middle of a body, or do not read their answers, take a bounded part of the
server's memory, and small requests are always served.

An answer takes several times its size while it is made, which nothing counts. So of the long ones,
about many topics, one is made at a time; it is not sent meanwhile, so no client holds others up.

Invariant: `bodies` and `answers` are the sums of what is currently counted; only a body or answer
that is alone in its pool may exceed the limit.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

import trio

FREE_BYTES: Final = 16 * 1024
"""Bytes of each body and each answer that are not counted."""
SHORT_TOPICS: Final = 50
"""Answers about more topics are long ones."""
NO_ROOM: Final = "this server has no memory for so much at the moment: try again"


class Pool:
    """Room for `bytes_max` bytes; a single larger item fits if it is alone."""

    __slots__ = ("_bytes_max", "used")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.used = 0

    def take(self, more: int, had: int = 0) -> bool:
        """Take `more` bytes for an item that has `had` already; returns whether they fit."""
        if self.used + more > self._bytes_max and self.used > had:
            return False
        self.used += more
        return True

    def give_back(self, size: int) -> None:
        self.used -= size
        assert self.used >= 0, "more was given back than was taken"


class Memory:
    """See the module's docstring."""

    __slots__ = ("_making", "answers", "bodies")

    def __init__(self, bytes_max: int = 16 * 1024 * 1024) -> None:
        self.bodies = Pool(bytes_max)
        self.answers = Pool(bytes_max)
        self._making = trio.Lock()

    def turn(self, topics: int) -> AbstractAsyncContextManager[None]:
        """The turn to make an answer about so many topics."""
        return self._making if topics > SHORT_TOPICS else nullcontext()
