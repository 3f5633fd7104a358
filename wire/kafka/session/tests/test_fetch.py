"""What is given from where, how much of it, and when."""

from __future__ import annotations

import trio

from core.entry import kafka_batch
from core.testing.bench import settled
from wire.kafka import batches, errors
from wire.kafka.messages.records import FetchedPartition
from wire.kafka.session.tests.conftest import Stage, fetch_request, produce_request
from wire.kafka.tests.batch import batch


def given(part: FetchedPartition) -> list[tuple[int, int]]:
    """Base offset and records of each batch."""
    data, found = part.records or b"", []
    while data:
        header = kafka_batch.header_of(data)
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
    assert client.hear() == []
    await other.produce("t", batch(b"a"))
    (heard,) = client.hear()
    assert given(heard.responses[0].partitions[0]) == [(0, 1)]


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
    assert client.hear() == []
    assert given(await other.fetch("t", 0)) == [(0, 60)]
    client.line.congested = False
    client.session.relieved()
    await settled()
    assert len(client.hear()) == 3


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
