"""Whoever had before him what is over goes on behind it."""

import pytest

from magnetar.core.kernel.errors import NotAllowed
from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import bench, settled
from magnetar.core.topic.log_start import begin_at, pass_over, truncate


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


async def test_truncation_leaves_nothing_and_moves_all_subscriptions() -> None:
    async with bench() as made:
        topic = await made.topic()
        slow = await topic.subscription("slow", start=START)
        await made.published(topic, *[b"%d" % number for number in range(5)])
        await truncate([topic])
        assert topic.ledger.chain.entries == 0
        assert slow.cursor.backlog == 0


async def test_internal_topics_begin_where_they_did() -> None:
    async with bench() as made:
        topic = await made.topic("pulsar/system/__state")
        other = await made.topic()
        places = await made.published(topic, *[b"%d" % number for number in range(5)])
        await made.published(other, b"0")
        with pytest.raises(NotAllowed, match="internal"):
            await begin_at(topic, 2, places[2])
        with pytest.raises(NotAllowed, match="internal"):
            await truncate([other, topic])
        assert topic.ledger.chain.entries == 5
        assert other.ledger.chain.entries == 1, "all or none"
