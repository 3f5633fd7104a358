"""What holds entries back: durable subscriptions, and no reader."""

from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import Bench
from magnetar.core.topic.backlog import backlog_bytes, needed_from, slowest


async def test_the_slowest_durable_subscription_counts(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x" * 100] * 4)
    assert (slowest(topic), backlog_bytes(topic)) == (None, 0)
    assert needed_from(topic) == topic.ledger.chain.after(places[-1]), "nobody needs anything"
    topic.reader("r", START)
    assert (slowest(topic), backlog_bytes(topic)) == (None, 0)
    for name, acked in (("quick", 3), ("slow", 1)):
        subscription = await topic.subscription(name, start=START)
        subscription.skip_to(places[acked - 1])
    assert slowest(topic) == places[0]
    assert needed_from(topic) == places[1]
    assert backlog_bytes(topic) >= 300


async def test_deduplication_needs_no_entries(desk: Bench) -> None:
    """It stores what they say before they go."""
    topic = await desk.topic(deduplication=True)
    places = await desk.published(topic, b"x", b"y")
    (await topic.subscription("s", start=START)).skip_to(places[-1])
    assert needed_from(topic) > places[-1]
    assert backlog_bytes(topic) == 0
