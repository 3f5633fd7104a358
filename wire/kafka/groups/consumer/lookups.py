"""Looks up the topics of subscriptions: ids, partition counts, and matches of patterns.

Names are looked up in the catalog. Patterns are matched against all topics with short names for
Kafka's clients; that list is cached for a while.

Invariant: other tasks run during long lookups.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from magnetar.core.broker import topic_list
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import DEFAULT_NAMESPACE, NamespaceName
from magnetar.core.patterns.patterns import compiled
from magnetar.wire.kafka.groups.consumer.heartbeat import Topics
from magnetar.wire.kafka.names import called, topic_of

LISTED_SECONDS: Final = 2.0
"""How long the list of all topics is cached."""
PATTERNS_MAX: Final = 256
"""Patterns with cached matches."""


class Lookups:
    """See the module's docstring."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._listed: list[str] = []
        self._listed_until = float("-inf")
        self._matches: dict[str, frozenset[str]] = {}
        """The listed topics that match each pattern."""

    async def find(self, names: Set[str], patterns: Set[str]) -> Topics:
        """The existing topics with those names, or with names that match those patterns."""
        matches = {pattern: await self._matching(pattern) for pattern in patterns}
        ids: dict[str, bytes] = {}
        sizes: dict[bytes, int] = {}
        async for name in Cooperative(sorted(set(names).union(*matches.values()))):
            try:
                topic = topic_of(name)
            except InvalidName:
                continue
            partitions = await self._broker.catalog.partitions(topic)
            if partitions or await self._broker.exists(topic):
                ids[name] = await self._broker.topic_ids.of(topic)
                sizes[ids[name]] = partitions or 1
        return Topics(ids, sizes, matches)

    async def _matching(self, pattern: str) -> frozenset[str]:
        names, machine = await self._all_names(), compiled(pattern)
        known = self._matches.get(pattern)
        if known is not None:
            return known
        found = [name async for name in Cooperative(names) if machine.matches(name)]
        if names is self._listed:  # the list was not renewed meanwhile
            while len(self._matches) >= PATTERNS_MAX:
                del self._matches[next(iter(self._matches))]
            self._matches[pattern] = frozenset(found)
        return frozenset(found)

    async def _all_names(self) -> list[str]:
        now = self._broker.clock.monotonic()
        if now >= self._listed_until:
            namespace = NamespaceName.parse(DEFAULT_NAMESPACE)
            found = await topic_list.persistent_topics_of(self._broker, namespace)
            listed = sorted(map(called, found))
            if listed != self._listed:
                self._listed = listed
                self._matches.clear()
            self._listed_until = now + LISTED_SECONDS
        return self._listed
