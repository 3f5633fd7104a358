"""The end of a terminated topic, announced once to consumers that have had everything.

It is announced when the last entry is acknowledged, not when it is delivered: until then it may
have to come again. A consumer that attaches later hears it as well (`again`).
"""

from __future__ import annotations

from collections.abc import Iterable

from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.topic.subscription.consumer import Consumer


class EndOfTopic:
    """See the module's docstring."""

    __slots__ = ("_announced", "_cursor")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._announced = False

    def tell(self, consumers: Iterable[Consumer]) -> None:
        """The topic is terminated, and there was nothing to deliver: say so, once."""
        if not self._announced and not self._cursor.backlog:
            self._announced = True
            for consumer in consumers:
                consumer.sink.end_of_topic()

    def again(self) -> None:
        """There is a consumer that has not heard it."""
        self._announced = False
