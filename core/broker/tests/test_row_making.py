"""Rows made anew: what is told, what they grow by, and which changes are asked for."""

from __future__ import annotations

from magnetar.core.broker.row_making import (
    MARKED,
    NO_LEDGERS,
    NO_LOG,
    make_rows,
    open_topics,
    stored_here,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.planning import encoded_row
from magnetar.core.testing.bench import stored
from magnetar.core.testing.broker import running
from magnetar.core.topic.persistent_topic import PersistentTopic


async def test_rows_of_some_numbers_are_made_and_their_changes_asked_for() -> None:
    async with running() as broker:
        topic = await broker.topic(TopicName.parse("t"))
        assert isinstance(topic, PersistentTopic)
        rows, marks = [b"other", NO_LOG, NO_LOG], bytearray([0, MARKED, MARKED])
        ledgers = [(7,), NO_LEDGERS, NO_LEDGERS]
        await stored(topic.ledger, b"a")
        grown = make_rows(rows, ledgers, marks, [2, 0], [topic, None])
        row = encoded_row(topic.ledger)
        assert ledgers == [(), (), (topic.ledger.chain.confirmed[0],)]
        assert rows == [NO_LOG, NO_LOG, row]
        assert grown == len(row) - len(b"other")
        assert marks == bytearray([MARKED, MARKED, 0]), "what does not exist has no row that lasts"
        await stored(topic.ledger, b"b")
        assert marks[2] == MARKED


async def test_a_topic_that_is_being_unloaded_stays_marked() -> None:
    async with running() as broker:
        topic = await broker.topic(TopicName.parse("t"))
        assert isinstance(topic, PersistentTopic)
        topic.fenced = True
        rows, marks = [NO_LOG], bytearray([0])
        make_rows(rows, [NO_LEDGERS], marks, [0], [topic])
        assert rows == [encoded_row(topic.ledger)]
        assert marks == bytearray([MARKED])


async def test_topics_that_are_open() -> None:
    async with running() as broker:
        topic = await broker.topic(TopicName.parse("t"))
        await broker.topic(TopicName.parse("non-persistent://public/default/n"))
        names = ["persistent://public/default/t", "non-persistent://public/default/n", "other"]
        assert open_topics(broker.topics, names) == [topic, None, None]
        topic.fenced = True
        assert open_topics(broker.topics, names) == [None] * 3


def test_ledgers_are_looked_for_in_their_partitions() -> None:
    ledgers = [(5,), NO_LEDGERS, (6, 7)]
    assert stored_here(ledgers, 250, [(250, 5), (250, 6), (251, 5), (252, 7), (252, 6)]) == [
        5,
        7,
        6,
    ]
