"""Announces the end of a terminated topic, once, to consumers that have received everything.

The end is announced when the last entry is acknowledged, as in Pulsar
(`Consumer.reachedEndOfTopic`), not when it is delivered, because until then it may be delivered
again. A consumer that attaches later is notified too (`again`).
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

    def announce(self, consumers: Iterable[Consumer]) -> None:
        """The topic is terminated and nothing is left to deliver: notify consumers, once."""
        if not self._announced and not self._cursor.backlog:
            self._announced = True
            for consumer in consumers:
                consumer.sink.end_of_topic()

    def again(self) -> None:
        """A consumer has attached that was not notified."""
        self._announced = False
