"""Samples the counters of topics, producers and subscriptions, from which rates are computed, and
counts aborted transactions.

It pauses after every few hundred counters, so that thousands of topics or producers do not block
the loop. Limits of rates are not here (`core/kernel/throttle.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.cooperation import Cooperative

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
from magnetar.core.topic.topic import Topic

SAMPLE_SECONDS: Final = 10.0
COUNTERS_PER_REST: Final = 500
"""Counters sampled in about a millisecond, after which other tasks run."""


async def run(broker: Broker) -> None:
    """Sample periodically, until cancelled."""
    while True:
        await trio.sleep(SAMPLE_SECONDS)
        await go_round(broker.topics.values(), broker.clock.wall_ms())
        await count_aborted(broker)


async def go_round(topics: Iterable[Topic], now_ms: int) -> None:
    """Sample all topics once."""
    left = COUNTERS_PER_REST
    for topic in list(topics):
        left -= sample(topic, now_ms)
        if left <= 0:
            left = COUNTERS_PER_REST
            await trio.lowlevel.checkpoint()


async def count_aborted(broker: Broker) -> None:
    """Count the aborted transactions that all topics have in memory, which are limited."""
    count = 0
    async for topic in Cooperative(list(broker.topics.values())):
        if topic.stored is not None and topic.stored.source is None:
            count += len(topic.stored.ledger.transactions.aborted)
    broker.env.aborted.count = count


def sample(topic: Topic, now_ms: int) -> int:
    """Sample one topic and everything attached to it; returns the number of counters."""
    topic.rates.sample(topic.inflow(), now_ms)
    count = 1
    for producer in topic.producers.all():
        producer.rates.sample(producer.inflow(), now_ms)
        count += 1
    for subscription in topic.subscriptions.values():
        subscription.rates.sample(subscription.outflow(), now_ms)
        count += 1
        for consumer in subscription.consumers:
            consumer.rates.sample(consumer.outflow(), now_ms)
            count += 1
    return count
