"""Whoever had before him what is over goes on behind it."""

from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import bench, settled
from magnetar.core.topic.log_start import begin_at, pass_over


async def test_subscriptions_go_on_where_the_topic_begins() -> None:
    async with bench() as made:
        topic = await made.topic()
        slow = await topic.subscription("slow", start=START)
        reader = topic.reader("reader", START)
        places = await made.published(topic, *[b"%d" % number for number in range(5)])
        quick = await topic.subscription("quick", start=places[3])
        await begin_at(topic, 2, places[2])
        assert slow.cursor.read_from == reader.cursor.read_from == places[2]
        assert quick.cursor.mark_delete == places[3]
        assert topic.ledger.first_index == 2
        await settled()
        pass_over(topic, places[4])
        assert slow.cursor.backlog == 0
