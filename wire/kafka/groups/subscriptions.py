"""All durable subscriptions and their topics, which Kafka's tools see as groups.

Every subscription, loaded or not, is a cursor below its topic's log in the metadata store. All are
listed once, on first use; from then on a watch reports the topics whose lists have changed.

Invariant: after `_refresh` the lists are those of the store when it began, or later.
"""

from __future__ import annotations

import itertools
from typing import Final
from urllib.parse import unquote

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import (
    MANAGED_LEDGERS,
    RESERVED_SUBSCRIPTION_PREFIX,
    RESERVED_SUBSCRIPTIONS,
    TopicName,
)
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.wire.kafka.names import called

DEPTH: Final = 4
"""Path elements of a log: tenant, namespace, domain, topic."""
LOGS_PER_REST: Final = 50
"""Logs that are read before other tasks run."""

TopicPartition = tuple[str, int]
"""The Kafka name of a topic, and a partition."""


class Subscriptions:
    """See the module's docstring."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._of_log: dict[str, frozenset[str]] = {}
        self._logs: dict[str, set[str]] = {}
        """The logs of each subscription."""
        self._stale: set[str] = set()
        self._watches = self._is_listed = False
        self._lock = trio.Lock()

    async def names(self) -> list[str]:
        """All subscriptions except the broker's own."""
        await self._refresh()
        return sorted(self._logs)

    async def topics(self, name: str) -> list[TopicName]:
        """Topics that have the subscription."""
        await self._refresh()
        return sorted(map(TopicName.of_managed_ledger, self._logs.get(name, ())), key=str)

    async def partitions(self, name: str) -> list[TopicPartition]:
        """Partitions that have the subscription, by their Kafka names."""
        return [await self.partition_of(topic) for topic in await self.topics(name)]

    async def partition_of(self, name: TopicName) -> TopicPartition:
        """The Kafka topic and partition of a topic, which may only be named like a partition."""
        index = name.partition_index
        if name.partitioned and index < await self._broker.catalog.partitions(name.base):
            return called(name.base), index
        return called(name), 0

    async def attached(self, name: str) -> list[tuple[TopicPartition, Consumer]]:
        """Pulsar consumers that are attached to the subscription, by topic."""
        found = []
        for topic in await self.topics(name):
            loaded = self._broker.topics.get(topic.full)
            subscription = loaded.subscriptions.get(name) if loaded is not None else None
            if subscription is not None and subscription.consumers:
                where = await self.partition_of(topic)
                found += [(where, consumer) for consumer in subscription.consumers]
        return found

    # -- the lists ----------------------------------------------------------------------------

    async def _refresh(self) -> None:
        async with self._lock:
            if not self._watches:
                self._broker.metadata.watch(MANAGED_LEDGERS, self._changed)
                self._watches = True
            if not self._is_listed:
                self._stale.update(await self._all_logs())
                self._is_listed = True
            for count in itertools.count():
                if not self._stale:
                    return
                if count % LOGS_PER_REST == 0:
                    await trio.lowlevel.checkpoint()
                log = self._stale.pop()
                try:
                    found = await self._broker.metadata.children(f"{MANAGED_LEDGERS}/{log}")
                except BrokerError:
                    self._stale.add(log)
                    raise
                self._set(log, frozenset(filter(_is_users, map(unquote, found))))

    async def _all_logs(self) -> list[str]:
        """The names of all stored topics' logs."""
        found = [""]
        for _ in range(DEPTH):
            found = [
                f"{path}/{step}"
                for path in found
                for step in await self._broker.metadata.children(f"{MANAGED_LEDGERS}{path}")
            ]
        return [path[1:] for path in found]

    def _changed(self, path: str) -> None:
        steps = path.split("/")[2:]
        if len(steps) > DEPTH:
            self._stale.add("/".join(steps[:DEPTH]))
        elif path == MANAGED_LEDGERS:  # anything below may have changed: the port joins reports
            self._is_listed = False
            self._stale.update(self._of_log)

    def _set(self, log: str, names: frozenset[str]) -> None:
        before = self._of_log.pop(log, frozenset())
        if names:
            self._of_log[log] = names
        for name in names - before:
            self._logs.setdefault(name, set()).add(log)
        for name in before - names:
            self._logs[name].discard(log)
            if not self._logs[name]:
                del self._logs[name]


def _is_users(name: str) -> bool:
    return name not in RESERVED_SUBSCRIPTIONS and not name.startswith(RESERVED_SUBSCRIPTION_PREFIX)
