"""Takes the samples that rates are made of, from every loaded topic and all that is attached to it.

It rests after every few hundred counters, so that thousands of idle topics, or thousands of
producers on one, cost no pause. Deciding what follows from rates is not here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
from magnetar.core.topic.topic import Topic

SAMPLE_SECONDS: Final = 10.0
COUNTERS_PER_REST: Final = 500
"""Things sampled before the loop gets its turn: about a millisecond."""


async def run(broker: Broker) -> None:
    """Go round until cancelled."""
    while True:
        await trio.sleep(SAMPLE_SECONDS)
        await go_round(broker.topics.values(), broker.clock.wall_ms())


async def go_round(topics: Iterable[Topic], now_ms: int) -> None:
    """Sample everything once."""
    left = COUNTERS_PER_REST
    for topic in list(topics):
        left -= sample(topic, now_ms)
        if left <= 0:
            left = COUNTERS_PER_REST
            await trio.lowlevel.checkpoint()


def sample(topic: Topic, now_ms: int) -> int:
    """Sample one topic and all that is attached to it; returns how many things that were."""
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
