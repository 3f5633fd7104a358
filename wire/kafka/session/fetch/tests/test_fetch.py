"""What is given from where, how much of it, and when."""

from __future__ import annotations

from typing import Any

import trio

from magnetar.core.entry.kafka import record_batch
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled, stored
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage, fetch_request, produce_request
from magnetar.wire.kafka.messages.records import FetchedPartition
from magnetar.wire.kafka.partition import batches
from magnetar.wire.kafka.session.fetch.fetch import AT_ONCE_PARTITIONS_MAX
from magnetar.wire.kafka.tests.batch import batch


def given(part: FetchedPartition) -> list[tuple[int, int]]:
    """Base offset and records of each batch."""
    data, found = part.records or b"", []
    while data:
        header = record_batch.header_of(data)
        batches.check(data[: header.size + 12], header)
        found.append((header.base_offset, header.records))
        data = data[header.size + 12 :]
    return found


async def test_whole_batches_from_the_offset_on(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"), batch(b"c"), batch(b"d", b"e", b"f"))
    assert given(await client.fetch("t", 0)) == [(0, 2), (2, 1), (3, 3)]
    assert given(await client.fetch("t", 1)) == [(0, 2), (2, 1), (3, 3)]
    assert given(await client.fetch("t", 5)) == [(3, 3)]
    assert given(await client.fetch("t", 6)) == []


async def test_at_least_one_however_large(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(*[b"x" * 20] * 20), batch(b"y"))
    part = await client.fetch("t", 0, size=100)
    assert given(part) == [(0, 20)]
    assert given(await client.fetch("t", 20, size=100)) == [(20, 1)]


async def test_offsets_that_are_not_there(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    for offset in (-1, 2, 2**60):
        part = await client.fetch("t", offset)
        assert part.error_code == errors.OFFSET_OUT_OF_RANGE
        assert (part.log_start_offset, part.high_watermark) == (0, 1)
    assert (await client.fetch("unknown", 0)).error_code == errors.UNKNOWN_TOPIC


async def test_news_end_the_wait_and_nothing_behind_it_waits(stage: Stage) -> None:
    client, other = await stage.client("t"), await stage.client()
    client.ask(fetch_request("t", 0, wait_ms=60_000, min_bytes=1), 12)
    await settled()
    assert client.receive() == []
    await other.produce("t", batch(b"a"))
    (received,) = client.receive()
    assert given(received.responses[0].partitions[0]) == [(0, 1)]


async def test_what_is_not_stored_is_not_given(slow_stage: Stage) -> None:
    client = await slow_stage.client("t")
    client.ask(produce_request("t", batch(b"a")), 9)
    await settled()
    other = await slow_stage.client()
    part = await other.fetch("t", 0)
    assert (given(part), part.high_watermark) == ([], 0)
    slow_stage.stores.ledgers.sync()
    await settled()
    assert given(await other.fetch("t", 0)) == [(0, 1)]


async def test_nothing_is_gathered_for_who_takes_nothing(stage: Stage) -> None:
    client, other = await stage.client("t"), await stage.client()
    await client.produce("t", batch(*[b"x" * 60] * 60))
    client.line.congested = True
    for _ in range(3):
        client.ask(fetch_request("t", 0), 12)
    await settled()
    assert client.receive() == []
    assert given(await other.fetch("t", 0)) == [(0, 60)]
    client.line.congested = False
    client.session.relieved()
    await settled()
    assert len(client.receive()) == 3


async def test_who_waits_for_room_goes_with_the_connection(stage: Stage) -> None:
    client = await stage.client("t")
    client.line.congested = True
    before = trio.lowlevel.current_statistics().tasks_living
    client.ask(fetch_request("t", 0, wait_ms=60_000, min_bytes=1), 12)
    client.ask(fetch_request("t", 0, wait_ms=60_000, min_bytes=1), 12)
    await settled()
    assert trio.lowlevel.current_statistics().tasks_living == before + 1
    client.session.closed("gone")
    await settled()
    assert trio.lowlevel.current_statistics().tasks_living == before


def heard_at_once(client: Client, *offsets: int, **more: Any) -> list[list[tuple[int, int]]]:
    """What is given of partition 0 from each offset before any task has run."""
    for offset in offsets:
        client.ask(fetch_request("t", offset, **more), 12)
    return [given(one.responses[0].partitions[0]) for one in client.receive()]


async def test_who_reads_behind_the_writers_is_answered_at_once(stage: Stage) -> None:
    client, other = await stage.client("t"), await stage.client()
    await client.produce("t", batch(b"a", b"b"), batch(b"c"))
    assert heard_at_once(client, 0) == [], "nobody knows yet which entry that is"
    await settled()
    assert heard_at_once(client) == [[(0, 2), (2, 1)]]
    await wait_for_news(client, 3)
    await other.produce("t", batch(b"d"))
    assert heard_at_once(client) == [[(3, 1)]]
    await other.produce("t", batch(b"e", b"f"))
    assert heard_at_once(client, 4, 4, min_bytes=1) == [[(4, 2)], [(4, 2)]]
    await wait_for_news(client, 6)


async def wait_for_news(client: Client, offset: int) -> None:
    """Who has waited once is taken for somebody who reads along."""
    client.ask(fetch_request("t", offset, wait_ms=60_000, min_bytes=1), 12)
    await settled()
    assert client.receive() == []


async def test_who_asks_for_much_takes_the_long_way(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    await client.fetch("t", 0)
    request = fetch_request("t", 0)
    request.topics *= AT_ONCE_PARTITIONS_MAX + 1
    client.ask(request, 12)
    assert client.receive() == []
    await settled()
    (received,) = client.receive()
    assert len(received.responses) == AT_ONCE_PARTITIONS_MAX + 1


async def test_who_wants_more_than_there_is_waits_for_it(stage: Stage) -> None:
    client, other = await stage.client("t"), await stage.client()
    await wait_for_news(client, 0)
    await other.produce("t", batch(b"a"))
    assert heard_at_once(client) == [[(0, 1)]]
    one = len(batch(b"b"))
    await other.produce("t", batch(b"b"))
    assert heard_at_once(client, 1, min_bytes=2 * one, wait_ms=60_000) == []
    await other.produce("t", batch(b"c"))
    assert heard_at_once(client) == [[(1, 1), (2, 1)]]


async def test_what_others_brought_takes_the_long_way(stage: Stage) -> None:
    client, other = await stage.client("t"), await stage.client()
    await wait_for_news(client, 0)
    await other.produce("t", batch(b"a"))
    assert heard_at_once(client) == [[(0, 1)]]
    topic = await stage.broker.topic(TopicName.parse("t").partition(0), create=False)
    assert isinstance(topic, PersistentTopic)
    await other.produce("t", batch(b"b"))
    await stored(topic.ledger, entry(b"by Pulsar's"))
    await other.produce("t", batch(b"c"))
    assert heard_at_once(client, 1) == []
    await settled()
    assert heard_at_once(client) == [[(1, 1), (2, 1), (3, 1)]]


async def test_of_damage_it_is_told_at_the_end_of_the_time(stage: Stage) -> None:
    """Who asks again at once would else do so for ever; what is good elsewhere waits for nobody."""
    client = await stage.client("t")
    for value in (b"a", b"b", b"c"):
        await client.produce("t", batch(value))
    topic = await stage.broker.topic(TopicName.parse("t-partition-0"), create=False)
    assert isinstance(topic, PersistentTopic)
    stage.stores.ledgers.ledgers[topic.ledger.chain.first[0]].damaged = {1}
    stage.broker.tail_cache.bytes_max = 0
    stage.broker.tail_cache.evict()
    assert given(await client.fetch("t", 0)) == [(0, 1)]
    client.ask(fetch_request("t", 1, wait_ms=200, min_bytes=1), 12)
    await settled()
    assert client.receive() == []
    await trio.sleep(0.5)
    (received,) = client.receive()
    assert received.responses[0].partitions[0].error_code == errors.CORRUPT_MESSAGE
