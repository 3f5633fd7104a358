"""Requests whose turn has not come, in order; and whether they are produces alone.

One receive may bring thousands, and for each it is asked: so it is counted, not looked for.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from wire.kafka import hot

if TYPE_CHECKING:
    from wire.kafka.wire import Asked


class Pending:
    """See the module's docstring. Invariant: `_others` of `_requests` are no produces."""

    __slots__ = ("_others", "_requests")

    def __init__(self) -> None:
        self._requests: deque[Asked] = deque()
        self._others = 0

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def first(self) -> Asked:
        return self._requests[0]

    @property
    def only_produces(self) -> bool:
        return not self._others

    def add(self, asked: Asked) -> None:
        self._requests.append(asked)
        self._others += asked.key != hot.KEY

    def take(self) -> Asked:
        """The first one: its turn has come."""
        asked = self._requests.popleft()
        self._others -= asked.key != hot.KEY
        return asked

    def clear(self) -> None:
        self._requests.clear()
        self._others = 0
