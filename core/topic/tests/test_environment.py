"""What topics get from the broker."""

from magnetar.core.testing.bench import Bench


async def test_a_topic_that_nobody_looks_after_may_be_lost(desk: Bench) -> None:
    """The default: where there is no broker, nobody has to put it away."""
    topic = await desk.topic()
    desk.env.lost(topic)
    assert not topic.fenced
