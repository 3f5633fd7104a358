"""Sampling topics and what is attached to them."""

import trio

from magnetar.core.broker import rate_sampler
from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.names import TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.core.testing.turns import counted_turns


async def test_a_topic_knows_how_much_comes_in(nursery: trio.Nursery) -> None:
    broker = Broker(
        BrokerSettings(), MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None
    )
    await nursery.start(broker.run)
    topic = await broker.topic(TopicName.parse("a"))
    topic.publish([b"x" * 10] * 20, None, lambda _: None)
    now_ms = broker.clock.wall_ms()
    await rate_sampler.go_round(broker.topics.values(), now_ms + 10_000)
    assert 1.9 < topic.rates.per_second.messages <= 2
    assert 19 < topic.rates.per_second.bytes <= 20
    await rate_sampler.go_round(broker.topics.values(), now_ms + 20_000)
    assert topic.rates.per_second.messages == 0
    nursery.cancel_scope.cancel()


async def test_aborted_transactions_are_counted(nursery: trio.Nursery) -> None:
    broker = Broker(
        BrokerSettings(), MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None
    )
    await nursery.start(broker.run)
    for name, aborted in (("a", 3), ("b", 4), ("non-persistent://public/default/c", 0)):
        topic = await broker.topic(TopicName.parse(name))
        for number in range(aborted):
            assert topic.stored is not None
            topic.stored.ledger.transactions.wrote(number, number, (1, number), 0)
            topic.stored.ledger.transactions.ended(number, number + 10, committed=False)
    await rate_sampler.count_aborted(broker)
    assert broker.env.aborted.count == 7
    nursery.cancel_scope.cancel()


async def test_thousands_of_idle_topics_cost_no_pause(nursery: trio.Nursery) -> None:
    broker = Broker(
        BrokerSettings(), MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None
    )
    await nursery.start(broker.run)
    topic = await broker.topic(TopicName.parse("a"))
    async with counted_turns() as turns:
        await rate_sampler.go_round([topic] * 10_000, broker.clock.wall_ms() + 10_000)
        assert turns.count >= 10_000 // rate_sampler.COUNTERS_PER_REST - 2
    nursery.cancel_scope.cancel()
