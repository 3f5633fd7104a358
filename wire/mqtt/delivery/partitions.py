"""How many partitions the topics of MQTT's messages have, and which topics there are not.

    counted   the number is known; new partitions are found by `look`
    missed    a session has a subscription to it, and it is not there and may not be created;
              `look` finds that it is back

Invariant: a topic is counted while one of its logs is open, and one that is used no more is not.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import NamespaceNotFound, TopicNotFound
from magnetar.core.kernel.names import TopicName

ABSENT: Final = (NamespaceNotFound, TopicNotFound)
"""Errors of topics that are not there: sessions do without them."""
MISSED_MAX: Final = 1_000
"""Topics that are looked for; of others, a session hears when it connects."""


class PartitionCounts:
    """See the module's docstring."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._counts: dict[TopicName, int] = {}
        """0 for a topic without."""
        self._missed: dict[TopicName, None] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def known(self, base: TopicName) -> int | None:
        """The number of partitions; None if they have to be counted. Plain call."""
        return self._counts.get(base)

    async def count(self, base: TopicName) -> int:
        """The number of partitions; the topic may be created with them."""
        found = self._counts.get(base)
        if found is None:
            found = await self._broker.partitions_or_create(base, create=True)
            self._counts[base] = found
        return found

    def forget(self, base: TopicName) -> None:
        """None of its logs is open."""
        self._counts.pop(base, None)

    def miss(self, base: TopicName) -> bool:
        """A session needs a topic that is not there; returns whether it is now looked for."""
        is_new = base not in self._missed and len(self._missed) < MISSED_MAX
        if is_new:
            self._missed[base] = None
        return is_new

    async def look(self) -> bool:
        """Count again; returns whether there are new logs to read."""
        changed = False
        for base, count in list(self._counts.items()):
            found = await self._broker.catalog.partitions(base)
            if found != count and base in self._counts:
                self._counts[base] = found
                changed = True
        for base in list(self._missed):
            if await self._broker.exists(base) or await self._broker.catalog.partitions(base):
                del self._missed[base]
                self.forget(base)
                changed = True
        return changed


def names_of(base: TopicName, count: int) -> list[TopicName]:
    """The topics that have its messages: its partitions, or itself."""
    return [base.partition(number) for number in range(count)] or [base]
