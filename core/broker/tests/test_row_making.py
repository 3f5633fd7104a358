"""Rows made anew: what is told, what they grow by, and which changes are asked for."""

from __future__ import annotations

from magnetar.core.broker.broker import Broker
from magnetar.core.broker.row_making import NO_LOG, Rows, open_topics
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.change_notice import COUNTED, KEPT, MARKED
from magnetar.core.ledger.log.planning import encoded_row
from magnetar.core.testing.bench import stored
from magnetar.core.testing.broker import running
from magnetar.core.topic.persistent_topic import PersistentTopic


async def loaded(broker: Broker) -> PersistentTopic:
    topic = await broker.topic(TopicName.parse("t"))
    assert isinstance(topic, PersistentTopic)
    return topic


def rows(number: int) -> Rows:
    made = Rows()
    made.extend(number)
    return made


async def test_rows_of_some_numbers_are_made_and_their_changes_asked_for() -> None:
    async with running() as broker:
        topic, made = await loaded(broker), rows(3)
        await stored(topic.ledger, b"a")
        grown = made.make([2, 0], [topic, None])
        row = encoded_row(topic.ledger)
        assert made.text() == b"null,null," + row
        assert grown == len(row) - len(NO_LOG)
        assert made.marks == bytes([MARKED, MARKED, KEPT]), "what does not exist stays marked"
        await stored(topic.ledger, b"b")
        assert made.marks[2] == COUNTED
        assert made.text_of(2) == encoded_row(topic.ledger) != row
        assert made.text() == b"null,null," + made.text_of(2)


async def test_a_topic_that_is_being_unloaded_stays_marked() -> None:
    async with running() as broker:
        topic, made = await loaded(broker), rows(1)
        topic.fenced = True
        made.make([0], [topic])
        assert made.text() == encoded_row(topic.ledger)
        assert made.marks == bytes([MARKED])


async def test_rows_that_are_dropped_stay_as_they_are() -> None:
    async with running() as broker:
        topic, made = await loaded(broker), rows(2)
        made.follow(0, topic.ledger, MARKED)
        await stored(topic.ledger, b"a")
        row = encoded_row(topic.ledger)
        made.drop()
        await stored(topic.ledger, b"b")
        assert topic.ledger.notice.marks is None
        assert made.text() == row + b",null"
        made.make([1], [topic])
        assert made.marks[1] == MARKED, "nobody tells them"


async def test_rows_are_added_while_logs_write_theirs() -> None:
    async with running() as broker:
        topic, made = await loaded(broker), rows(1)
        made.follow(0, topic.ledger, MARKED)
        made.extend(3)
        await stored(topic.ledger, b"a")
        assert made.text() == encoded_row(topic.ledger) + b",null,null"
        assert len(made) == 3


async def test_topics_that_are_open() -> None:
    async with running() as broker:
        topic = await broker.topic(TopicName.parse("t"))
        await broker.topic(TopicName.parse("non-persistent://public/default/n"))
        names = ["persistent://public/default/t", "non-persistent://public/default/n", "other"]
        assert open_topics(broker.topics, names) == [topic, None, None]
        topic.fenced = True
        assert open_topics(broker.topics, names) == [None] * 3


async def test_ledgers_are_looked_for_in_their_partitions() -> None:
    async with running() as broker:
        topic, made = await loaded(broker), rows(3)
        await stored(topic.ledger, b"a")
        made.make([2], [topic])
        ledger = topic.ledger.chain.confirmed[0]
        asked = [(252, ledger), (252, ledger + 1), (251, ledger)]
        assert made.stored_here(250, asked) == [ledger]
        await stored(topic.ledger, b"b")
        assert made.marks[2] == COUNTED
        assert made.stored_here(250, asked) == [ledger]
