"""Consumers that read compacted: the compacted ledger, then the log, and what they acknowledge."""

from __future__ import annotations

import time

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.compaction.last_values import LastValues
from magnetar.core.compaction.retention_rule import TransactionOutcome
from magnetar.core.entry.pulsar.messages import PulsarMessage
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger.compacted.compacted_reader import CompactedReader
from magnetar.core.ledger.log.chain import Position
from magnetar.core.testing.bench import Bench, Outcome, settled
from magnetar.core.testing.client import ClientConsumer, attached
from magnetar.core.testing.entries import batch, entry
from magnetar.core.topic.compacted.compacted_source import BLOCK_BYTES_MAX, mask_of
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType

EXCLUSIVE, FAILOVER = SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER


async def compact(topic: PersistentTopic) -> None:
    work = LastValues(
        topic.ledger,
        topic.compacted,
        lambda _key, _index: TransactionOutcome.HOLDS,
        retains_keyless=False,
        now_ms=1,
    )
    await work.run()


async def publish(desk: Bench, topic: PersistentTopic, text: str) -> dict[str, Position]:
    """A message for each letter: its key, and as its value the place in the text, or for a capital
    letter none. The last position of each key.
    """
    sent = [
        entry(b"" if key.isupper() else b"%d" % at, key=key.lower().encode())
        for at, key in enumerate(text)
    ]
    return dict(zip(text, await desk.published(topic, *sent), strict=True))


async def reader(topic: PersistentTopic, **options: object) -> ClientConsumer:
    return await attached(topic, EXCLUSIVE, read_compacted=True, **options)  # type: ignore[arg-type]


async def trim(topic: PersistentTopic) -> None:
    """Delete what is compacted."""
    await topic.ledger.roll()
    await topic.ledger.trim([one.ledger_id for one in topic.ledger.chain.segments])


async def test_first_the_values_then_the_log(desk: Bench) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "abcabcabcabdD")
    await compact(topic)
    client = await reader(topic)
    await desk.dispatch()
    assert client.take() == [last["c"], last["a"], last["b"]]
    more = await desk.published(topic, entry(b"x", key=b"a"), entry(b"", key=b"a"))
    await desk.dispatch()
    assert client.take() == more


async def test_a_topic_whose_keys_are_all_deleted(desk: Bench) -> None:
    topic = await desk.topic()
    await publish(desk, topic, "abAB")
    await compact(topic)
    client = await reader(topic)
    await desk.dispatch()
    assert client.take() == []
    more = await publish(desk, topic, "c")
    await desk.dispatch()
    assert client.take() == [more["c"]]


async def test_a_topic_that_is_not_compacted(desk: Bench) -> None:
    topic = await desk.topic()
    await publish(desk, topic, "aba")
    client = await reader(topic)
    await desk.dispatch()
    assert len(client.take()) == 3


async def test_others_read_the_log(desk: Bench) -> None:
    topic = await desk.topic()
    await publish(desk, topic, "abab")
    await compact(topic)
    client = await attached(topic, EXCLUSIVE)
    await desk.dispatch()
    assert len(client.take()) == 4


async def test_what_is_deleted_from_the_log_is_still_read(desk: Bench) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "abcdabcdabcd")
    await compact(topic)
    await trim(topic)
    assert topic.ledger.chain.segments == []
    client = await reader(topic)
    await desk.dispatch()
    assert client.take() == [last[key] for key in "abcd"]
    client.nack()
    await desk.dispatch()
    assert client.take() == [last[key] for key in "abcd"]


async def test_nothing_is_held_when_the_last_one_has_left(desk: Bench) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "abcdabcdabcd")
    await compact(topic)
    client = await reader(topic, permits=1)
    await desk.dispatch()
    assert client.take() == [last["a"]]
    assert desk.env.loaded.held_bytes > 0
    topic.subscriptions["s"].detach(client.consumer)
    assert desk.env.loaded.held_bytes == desk.env.loaded.expected_bytes == 0


async def test_a_skip_leaves_what_the_log_has_lost(desk: Bench) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "abcdabcdabcd")
    await compact(topic)
    await trim(topic)
    await publish(desk, topic, "x")
    client = await reader(topic, permits=1)
    await desk.dispatch()
    assert client.take() == [last["a"]]
    topic.subscriptions["s"].skip_to(last["b"])
    client.flow(2)
    await desk.dispatch()
    assert client.take() == [last["c"], last["d"]]


async def test_what_is_passed_over_counts_as_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "xabababcX")
    await compact(topic)
    client = await reader(topic)
    await desk.dispatch()
    cursor = topic.subscriptions["s"].cursor
    assert client.take() == [last[key] for key in "abc"]
    client.ack(last["b"])
    assert cursor.mark_delete == (last["a"][0], last["a"][1] - 1)
    client.ack(last["a"], last["c"])
    await desk.dispatch()
    assert cursor.backlog == 0
    assert cursor.mark_delete == topic.ledger.chain.confirmed


async def test_one_who_has_begun_hears_of_the_end_of_a_key(desk: Bench) -> None:
    """He reads his compacted ledger to its end, and then the log, though it is compacted again."""
    topic = await desk.topic()
    last = await publish(desk, topic, "aabbcc")
    await compact(topic)
    former = topic.compacted.current
    assert former is not None
    client = await reader(topic, permits=1)
    await desk.dispatch()
    assert client.take() == [last["a"]]
    gone = await publish(desk, topic, "Ad")
    await compact(topic)
    assert former.ledger_id in desk.ledgers.ledgers
    client.flow(10)
    await desk.dispatch()
    assert client.take() == [last["b"], last["c"], gone["A"], gone["d"]]
    await settled()
    assert former.ledger_id not in desk.ledgers.ledgers
    other = await reader(topic, subscription="other")
    await desk.dispatch()
    assert other.take() == [last["b"], last["c"], gone["d"]]


async def test_what_retention_has_deleted_meanwhile_comes_from_the_later_one(desk: Bench) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "aabb")
    await compact(topic)
    client = await reader(topic, permits=1)
    await desk.dispatch()
    client.take()
    new = await publish(desk, topic, "Acdcd")
    await compact(topic)
    await trim(topic)
    client.flow(10)
    await desk.dispatch()
    assert client.take() == [last["b"], new["c"], new["d"]]


async def test_batches_come_with_what_is_left(desk: Bench) -> None:
    topic = await desk.topic()
    sent = batch([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4")])
    topic.ledger.append([sent], [4], Outcome())
    await settled()
    (other,) = await desk.published(topic, entry(b"5", key=b"c"))
    await compact(topic)
    client = await reader(topic)
    await desk.dispatch()
    assert client.bits == {(0, 0): 0b0110}
    assert client.consumer.permits == 1000 - 3
    part = client.payloads[0]
    assert [one.place for one in PulsarMessage(part[len(part) - _size(part) :]).records()] == [1, 2]
    client.ack_bits((0, 0), 0b1101, 4)
    assert topic.subscriptions["s"].cursor.mark_delete < (0, 0)
    client.nack()
    client.bits = {}
    await desk.dispatch()
    assert client.bits == {(0, 0): 0b0100}
    client.ack_bits((0, 0), 0b1001, 4)
    assert topic.subscriptions["s"].cursor.mark_delete == (0, 0)
    client.ack(other)
    assert topic.subscriptions["s"].cursor.backlog == 0


def _size(stored: bytes) -> int:
    """Of an entry, without the broker's header."""
    return len(stored) - 6 - int.from_bytes(stored[2:6], "big")


async def test_bits_come_though_the_log_has_lost_the_entry(desk: Bench) -> None:
    topic = await desk.topic()
    topic.ledger.append([batch([(b"a", b"1"), (b"a", b"2"), (b"b", b"3")])], [3], Outcome())
    await settled()
    await compact(topic)
    await trim(topic)
    client = await reader(topic)
    await desk.dispatch()
    assert client.bits == {(0, 0): 0b110}


async def test_more_than_one_block(desk: Bench) -> None:
    topic = await desk.topic()
    large = BLOCK_BYTES_MAX // 3
    sent = [entry(b"x" * large, key=b"%d" % (at % 9)) for at in range(18)]
    places = await desk.published(topic, *sent)
    await compact(topic)
    client = await reader(topic)
    await desk.dispatch()
    assert client.take() == places[9:]


async def test_who_is_active_decides(desk: Bench) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "aab")
    await compact(topic)
    one = await attached(topic, FAILOVER, name="a", read_compacted=True)
    other = await attached(topic, FAILOVER, name="b", priority=1)
    await desk.dispatch()
    assert one.take() == [last["a"], last["b"]]
    topic.detach(one.consumer)
    await desk.dispatch()
    assert len(other.take()) >= 2
    topic.detach(other.consumer)
    assert not topic.compacted._open


async def test_a_ledger_that_cannot_be_read_is_tried_again(
    desk: Bench, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await desk.topic()
    last = await publish(desk, topic, "aab")
    await compact(topic)
    block, failures = CompactedReader.block, 2

    async def fails(self: CompactedReader, position: Position, bytes_max: int) -> object:
        nonlocal failures
        if failures:
            failures -= 1
            raise StorageFailed("no")
        return await block(self, position, bytes_max)

    monkeypatch.setattr(CompactedReader, "block", fails)
    client = await reader(topic)
    for _ in range(4):
        await desk.dispatch()
        await trio.sleep(1)
    assert client.take() == [last["a"], last["b"]]


def test_which_messages_are_left_of_a_batch() -> None:
    assert mask_of([], 5) == 0
    assert mask_of([0, 2, 8], 9) == 0b1_0000_0101
    assert mask_of([2, 9, 1 << 60], 9) == 0b100, "a client may note any place"
    begun = time.process_time()
    assert mask_of(range(131_072), 131_072) == (1 << 131_072) - 1
    assert time.process_time() - begun < 0.4, "it takes 0.05 s; a sum of the bits took 0.85 s"
