"""What is known of a topic's transactions after a restart, and when they begin."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest
import trio

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.record import Record
from magnetar.core.kernel.errors import NotAllowed, NotReady, StorageFailed
from magnetar.core.ledger.fold.fold import Snapshot
from magnetar.core.ledger.read.transaction_index import (
    ABORTED_MAX,
    ALL_ABORTED_MAX,
    Aborted,
    IndexImage,
    Open,
    TransactionIndex,
)
from magnetar.core.testing.bench import Bench, bench, settled
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.transaction_buffer import decode, encode


def transactional(writer: int) -> bytes:
    batch = bytearray(record_batch.batch_of([Record(0, 1, None, b"v")], 0, 1))
    batch[22] |= record_batch.TRANSACTIONAL
    batch[43:51] = writer.to_bytes(8, "big")
    return bytes(batch)


async def write(topic: PersistentTopic, writer: int) -> None:
    def done(result: Any) -> None:
        topic.transactions.index.wrote(writer, topic.ledger.delivered_index(result), result, 1)

    entry = form.wrapped(transactional(writer), 1, 1)
    topic.publish([entry], [1], done)
    await settled()


async def reloaded(desk: Bench, topic: PersistentTopic, *, killed: bool) -> PersistentTopic:
    await settled()  # who is killed does nothing any more
    if not killed:
        await topic.close()
    return await desk.topic()


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("saved", [True, False], ids=["saved", "not saved"])
async def test_all_of_it_is_there_again(killed: bool, saved: bool) -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        await write(topic, 1)
        await write(topic, 2)
        await topic.end_transaction(form, 1, 0, committed=False)
        if saved:
            await topic.transactions.fold.save()
        await write(topic, 3)
        await write(topic, 2)
        await topic.end_transaction(form, 2, 0, committed=True)
        before = topic.transactions.index
        again = await reloaded(desk, topic, killed=killed)
        index = again.transactions.index
        assert [one.first for one in index.open.values()] == [3]
        assert list(index.open) == list(before.open) == [3]
        assert index.aborted == before.aborted


async def test_logs_without_any_have_no_fold() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.end_transaction(form, 1, 0, committed=True)
        assert topic.ledger.chain.entries == 0
        again = await desk.topic()
        assert not again.transactions.present
        assert again.ledger.followers == ()


async def test_what_was_before_the_first_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await desk.published(topic, *[b"x"] * 20)
        await topic.begin_transactions()
        await write(topic, 1)
        seen: list[int] = []
        apply = TransactionIndex.apply

        def applying(self: TransactionIndex, sent: bytes, index: int, *more: Any) -> None:
            seen.append(index)
            apply(self, sent, index, *more)

        monkeypatch.setattr(TransactionIndex, "apply", applying)
        await desk.topic()
        assert seen == [20]


async def test_a_snapshot_of_as_many_as_may_be_fits_into_a_znode() -> None:
    generator = random.Random(1)
    index, at = TransactionIndex(), 10_000_000
    for number in range(ABORTED_MAX):
        key = (generator.randrange(16), 1_000_000 + number)
        index.wrote(key, at, (123_456, number), 0)
        at += generator.randrange(1, 300)
        index.ended(key, at, committed=False)
        at += 1
    stored = zlib.compress(encode(Snapshot((1, 2), index.snapshot(), 0)))
    assert 300_000 < len(stored) < 900_000, "as `zookeeper/store.py` allows"


async def test_a_topic_with_too_many_aborted_ones_begins_no_more() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        desk.env.aborted.count = ALL_ABORTED_MAX
        with pytest.raises(NotAllowed, match="aborted"):
            await topic.begin_transactions()
        desk.env.aborted.count = 0
        await topic.begin_transactions()


async def test_a_deleted_topic_leaves_no_snapshot() -> None:
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


async def test_a_topic_that_could_not_begin_may_try_again() -> None:
    """The snapshot was stored, the property was not."""
    async with bench() as desk:
        topic = await desk.topic()
        put = desk.metadata.put

        async def fail(path: str, value: bytes, expected: int) -> int:
            if path == topic.ledger.path:
                raise StorageFailed("no")
            return await put(path, value, expected)

        desk.metadata.put = fail  # type: ignore[method-assign]
        with pytest.raises(StorageFailed):
            await topic.begin_transactions()
        assert not topic.transactions.present
        desk.metadata.put = put  # type: ignore[method-assign]
        await topic.begin_transactions()
        await write(topic, 1)
        assert list((await desk.topic()).transactions.index.open) == [1]


def test_snapshots_of_older_versions_are_read() -> None:
    """Bytes of one, from before the time of creation was noted."""
    old = bytes.fromhex(
        "789c6b5e51905f9c5992999f3789997d497e416adec4499c93352631b39e676060ec3eff3483617962527e51"
        "496acac4c91c5c2200d9d4125d"
    )
    image = IndexImage([(9, Open(40, (3, 5), 1_700_000_000_000))], [Aborted(8, 10, 20)])
    assert decode(zlib.decompress(old)) == Snapshot((3, 7), image, 0)
    new = Snapshot((3, 7), image, 5)
    assert decode(encode(new)) == new


async def test_a_topic_is_not_terminated_while_a_transaction_is_open_in_it() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        await write(topic, 1)
        with pytest.raises(NotAllowed, match=r"open in the topic \(1\)"):
            await topic.terminate()
        await write(topic, 1)
        await topic.end_transaction(form, 1, 0, committed=True)
        await topic.terminate()
        assert topic.ledger.terminated
        assert topic.transactions.index.open == {}


async def test_a_transaction_that_begins_while_the_topic_ends_is_not_stranded() -> None:
    """Its first entry is on its way to storage when the topic is asked."""
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()

        def done(result: Any) -> None:
            topic.transactions.index.wrote(1, topic.ledger.delivered_index(result), result, 1)

        topic.publish([form.wrapped(transactional(1), 1, 1)], [1], done)
        with pytest.raises(NotAllowed):
            await topic.terminate()
        await topic.end_transaction(form, 1, 0, committed=True)
        await topic.terminate()


async def test_a_transaction_ends_in_a_terminated_topic_that_it_did_not_write_to() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        await topic.begin_transactions()
        await write(topic, 1)
        await topic.end_transaction(form, 1, 0, committed=True)
        await topic.terminate()
        entries = topic.ledger.chain.entries
        await topic.end_transaction(form, 2, 0, committed=True)
        again = await reloaded(desk, topic, killed=False)
        await again.end_transaction(form, 2, 0, committed=True)
        assert again.ledger.chain.entries == entries


async def test_what_was_on_its_way_before_the_first_is_no_part_of_one() -> None:
    """It states a transaction, as anybody may where there are none; its replay would find that."""
    async with bench(sync_at_once=False) as desk:
        topic = await desk.topic()
        topic.publish([form.wrapped(transactional(1), 1, 1)], [1], lambda _result: None)
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(topic.begin_transactions)
                await settled()
                assert topic.looks_at_messages, "others are refused from now on"
                assert topic.looks_for_transactions
                assert not topic.transactions.present
                desk.ledgers.sync()
        again = await desk.topic()
        assert again.transactions.present
        assert again.transactions.index.open == {}
