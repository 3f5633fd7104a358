"""The queue of one connection's requests that have not started.

It counts the requests that are no produces: one read may bring thousands of requests, and each
needs to know whether the queue has produces only.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from magnetar.wire.kafka.api_keys import PRODUCE

if TYPE_CHECKING:
    from magnetar.wire.kafka.wire import KafkaRequest


class Pending:
    """See the module's docstring. Invariant: `_others` of the `requests` are no produces."""

    __slots__ = ("_others", "requests")

    def __init__(self) -> None:
        self.requests: deque[KafkaRequest] = deque()
        """Public: the session reads it with every request, so it has no method in between."""
        self._others = 0

    @property
    def only_produces(self) -> bool:
        return not self._others

    def add(self, request: KafkaRequest) -> None:
        self.requests.append(request)
        self._others += request.key != PRODUCE

    def put_back(self, request: KafkaRequest) -> None:
        """Add a request that was taken, or came, before all others."""
        self.requests.appendleft(request)
        self._others += request.key != PRODUCE

    def take(self) -> KafkaRequest:
        """Remove and return the first request."""
        request = self.requests.popleft()
        self._others -= request.key != PRODUCE
        return request

    def clear(self) -> None:
        self.requests.clear()
        self._others = 0
