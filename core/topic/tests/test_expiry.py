"""Messages that nobody waits for any longer."""

from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import Bench
from magnetar.core.testing.entries import entry
from magnetar.core.topic.backlog import backlog_bytes
from magnetar.core.topic.expiry import evict_backlog, expire_before


async def test_expiry_goes_by_publish_time(desk: Bench) -> None:
    topic = await desk.topic()
    await topic.subscription("s", start=START)
    places = await desk.published(topic, *[entry(published_ms=ms) for ms in range(100, 125)])
    assert await expire_before(topic, 113) == 13
    assert topic.subscriptions["s"].cursor.mark_delete == places[12]
    assert await expire_before(topic, 10**6) == 12
    assert await expire_before(topic, 10**6) == 0


async def test_slow_subscriptions_lose_their_oldest(desk: Bench) -> None:
    topic = await desk.topic()
    await topic.subscription("s", start=START)
    for _ in range(4):
        await desk.published(topic, *[bytes(1000)] * 10)
    assert backlog_bytes(topic) > 40_000
    await evict_backlog(topic, 15_000)
    assert 10_000 < backlog_bytes(topic) <= 15_000
