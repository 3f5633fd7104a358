"""Requests whose turn has not come, in order; and whether they are produces alone.

One receive may bring thousands, and each asks for it: so it is counted, not searched.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from magnetar.wire.kafka.api_keys import PRODUCE

if TYPE_CHECKING:
    from magnetar.wire.kafka.wire import KafkaRequest


class Pending:
    """See the module's docstring. Invariant: `_others` of `requests` are no produces."""

    __slots__ = ("_others", "requests")

    def __init__(self) -> None:
        self.requests: deque[KafkaRequest] = deque()
        """Public, because each request that comes or goes looks whether there are any."""
        self._others = 0

    @property
    def only_produces(self) -> bool:
        return not self._others

    def add(self, request: KafkaRequest) -> None:
        self.requests.append(request)
        self._others += request.key != PRODUCE

    def take(self) -> KafkaRequest:
        """The first one: its turn has come."""
        request = self.requests.popleft()
        self._others -= request.key != PRODUCE
        return request

    def clear(self) -> None:
        self.requests.clear()
        self._others = 0
