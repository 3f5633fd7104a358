"""What is stored, where, and what is said of it."""

from __future__ import annotations

from core.errors import StorageFailed
from core.testing.bench import settled
from wire.kafka import errors
from wire.kafka.session.tests.conftest import Stage, produce_request
from wire.kafka.tests.batch import batch


async def test_offsets_count_records(stage: Stage) -> None:
    client = await stage.client("t")
    assert (await client.produce("t", batch(b"a", b"b", b"c"))).base_offset == 0
    assert (await client.produce("t", batch(b"d"))).base_offset == 3
    assert (await client.fetch("t", 0)).high_watermark == 4


async def test_nothing_is_said_before_it_is_stored(slow_stage: Stage) -> None:
    client = await slow_stage.client("t")
    client.ask(produce_request("t", batch(b"a")), 9)
    client.ask(produce_request("t", batch(b"b", b"c")), 9)
    await settled()
    assert client.hear() == []
    slow_stage.stores.ledgers.sync()
    await settled()
    heard = [each.responses[0].partition_responses[0].base_offset for each in client.hear()]
    assert heard == [0, 1]


async def test_a_bad_batch_spares_the_others(stage: Stage) -> None:
    client = await stage.client("t")
    bad = batch(b"a")[:-1] + b"\xff"
    assert (await client.produce("t", bad)).error_code == errors.CORRUPT_MESSAGE
    assert (await client.produce("t", b"")).error_code == errors.CORRUPT_MESSAGE
    assert (await client.produce("t", batch(b"a"))).base_offset == 0


async def test_topics_and_partitions_that_are_not_there(stage: Stage) -> None:
    client = await stage.client("t")
    assert (await client.produce("unknown", batch(b"a"))).error_code == errors.UNKNOWN_TOPIC
    heard = await client.hears(produce_request("t", batch(b"a"), index=7), 9)
    told = heard.responses[0].partition_responses[0]
    assert (told.index, told.error_code) == (7, errors.UNKNOWN_TOPIC)


async def test_without_acks_nothing_is_said_and_order_is_kept(stage: Stage) -> None:
    client = await stage.client("t")
    client.ask(produce_request("t", batch(b"a"), acks=0), 9)
    assert (await client.produce("t", batch(b"b"))).base_offset == 1
    client.ask(produce_request("t", b"nonsense", acks=0), 9)
    await settled()
    assert client.hear() == []
    assert client.line.ending is not None


async def test_what_comes_while_a_topic_is_loaded_waits_for_it(stage: Stage) -> None:
    first = await stage.client("t", "other")
    await first.produce("t", batch(b"before"))
    client = await stage.client()
    stage.front.logs._known.clear()
    for place in range(5):
        client.ask(produce_request("t", batch(b"%d" % place)), 9)
    await settled()
    offsets = [each.responses[0].partition_responses[0].base_offset for each in client.hear()]
    assert offsets == [1, 2, 3, 4, 5]


async def test_once_across_connections_and_a_reload(stage: Stage) -> None:
    client = await stage.client("t")
    once = batch(b"a", b"b", producer=(9, 0, 0))
    assert (await client.produce("t", once)).base_offset == 0
    assert (await client.produce("t", once)).base_offset == 0
    gap = batch(b"z", producer=(9, 0, 5))
    assert (await client.produce("t", gap)).error_code == errors.OUT_OF_ORDER
    for topic in list(stage.broker.topics.values()):
        await stage.broker.unload(topic.name)
    other = await stage.client()
    assert (await other.produce("t", once)).base_offset == 0, "known from the log"
    assert (await other.produce("t", batch(b"c", producer=(9, 0, 2)))).base_offset == 2


async def test_storage_that_refuses(slow_stage: Stage) -> None:
    client = await slow_stage.client("t")
    once = batch(b"a", producer=(9, 0, 0))
    client.ask(produce_request("t", once), 9)
    await settled()
    for ledger in slow_stage.stores.ledgers.ledgers.values():
        ledger.fail(StorageFailed("no"))
    await settled()
    (heard,) = client.hear()
    assert heard.responses[0].partition_responses[0].error_code != 0
