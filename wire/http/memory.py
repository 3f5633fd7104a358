"""What HTTP may hold in memory for all its clients together: bodies that come, answers that leave.

HTTP is for administration: its bodies and most answers are small, and small ones are free. Larger
ones have room while there is some; the next is answered 503, and may try again. So clients that
stop in the middle of a body, or do not read their answers, take a bounded part of the server's
memory and none from those who ask for little.

Invariant: `bodies` and `answers` are the sums of what is counted just now; beyond the limit there
is at most one, the only one of its kind.
"""

from __future__ import annotations

from typing import Final

FREE_BYTES: Final = 16 * 1024
"""Of each body and each answer."""
NO_ROOM: Final = "this server has no memory for so much at the moment: try again"


class Pool:
    """Room for so many bytes; for a larger one, too, while there is no other."""

    __slots__ = ("_bytes_max", "used")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.used = 0

    def take(self, more: int, had: int = 0) -> bool:
        """Whether somebody who has so much already may have so much more; then it counts."""
        if self.used + more > self._bytes_max and self.used > had:
            return False
        self.used += more
        return True

    def give_back(self, size: int) -> None:
        self.used -= size
        assert self.used >= 0, "more was given back than was taken"


class Memory:
    """See the module's docstring."""

    __slots__ = ("answers", "bodies")

    def __init__(self, bytes_max: int = 16 * 1024 * 1024) -> None:
        self.bodies = Pool(bytes_max)
        self.answers = Pool(bytes_max)
