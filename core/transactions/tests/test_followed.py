"""What is known of a log's transactions after a restart, from notes and from what came since."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.entry import kafka_batch, kafka_form
from magnetar.core.entry.record import Record
from magnetar.core.errors import NotReady
from magnetar.core.testing.bench import Bench, bench, settled
from magnetar.core.testing.metadata import overwrite
from magnetar.core.topic.topic import Topic
from magnetar.core.transactions import followed


def transactional(writer: int) -> bytes:
    batch = bytearray(kafka_batch.batch_of([Record(0, 1, None, b"v")], 0, 1))
    batch[22] |= kafka_batch.TRANSACTIONAL
    batch[43:51] = writer.to_bytes(8, "big")
    return bytes(batch)


async def write(topic: Topic, writer: int) -> None:
    def done(result: Any) -> None:
        index = topic.ledger.index_told(result)
        assert topic.transactions is not None
        topic.transactions.state.wrote(writer, index, result, 1)

    entry = kafka_form.wrapped(transactional(writer), 1, 1)
    topic.publish([entry], [1], done)
    await settled()


async def reloaded(desk: Bench, topic: Topic, *, killed: bool) -> Topic:
    await settled()  # who is killed does nothing any more
    if not killed:
        await topic.close()
    return await desk.topic()


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
async def test_all_of_it_is_there_again(killed: bool, noted: bool) -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        await write(topic, 1)
        await write(topic, 2)
        await topic.end_transaction(1, 0, committed=False)
        assert topic.transactions is not None
        if noted:
            await topic.transactions.save()
        await write(topic, 3)
        await write(topic, 2)
        await topic.end_transaction(2, 0, committed=True)
        before = topic.transactions.state
        again = await reloaded(desk, topic, killed=killed)
        assert again.transactions is not None
        state = again.transactions.state
        assert [one.first for one in state.open.values()] == [3]
        assert list(state.open) == list(before.open) == [3]
        assert state.aborted == before.aborted
        assert again.ledger.transactions is state


async def test_logs_without_any_are_not_followed() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.end_transaction(1, 0, committed=True)
        assert topic.ledger.chain.entries == 0
        assert (await desk.topic()).transactions is None


async def test_what_was_before_the_first_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await desk.published(topic, *[b"x"] * 20)
        await topic.begin_transactions()
        await write(topic, 1)
        seen: list[int] = []
        note = followed.Followed.note

        def noting(self: followed.Followed, sent: bytes, index: int, position: Any) -> None:
            seen.append(index)
            note(self, sent, index, position)

        monkeypatch.setattr(followed.Followed, "note", noting)
        await desk.topic()
        assert seen == [20]


async def test_notes_are_made_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "NOTED_ENTRIES", 5)
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        path = f"{followed.NOTES}/{topic.ledger.name}"
        first = await desk.metadata.get(path)
        for _ in range(5):
            await write(topic, 1)
        await settled()
        assert await desk.metadata.get(path) != first


async def test_the_beginning_of_the_log_takes_its_notes_along() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        await write(topic, 1)
        await topic.delete()
        assert not await desk.metadata.children("/magnetar/transactions/logs/public/default")


async def test_a_topic_on_its_way_out_begins_nothing() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.close()
        with pytest.raises(NotReady):
            await topic.begin_transactions()


async def test_notes_of_another_log_are_not_believed() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        path = f"{followed.NOTES}/{topic.ledger.name}"
        notes = followed.Notes((999, 5), [(7, followed.Open(0, (999, 0), 1))])
        await overwrite(desk.metadata, path, followed.zlib.compress(followed._encode(notes)))
        await write(topic, 1)
        again = await desk.topic()
        assert again.transactions is not None
        assert list(again.transactions.state.open) == [1]
