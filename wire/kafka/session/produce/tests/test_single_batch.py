"""The short way of words that have come before; `test_produce.py` tries what is said both ways."""

from __future__ import annotations

import pytest

from magnetar.core.entry.kafka import form
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage, produce_request
from magnetar.wire.kafka.session.produce import produce
from magnetar.wire.kafka.tests.batch import batch
from magnetar.wire.kafka.tests.frame import feed_large, framed
from magnetar.wire.kafka.wire import RepeatedProduce


async def test_words_that_have_come_before_take_the_short_way(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    monkeypatch.setattr(produce, "on_produce", None)
    results = await client.produce("t", batch(b"b", b"c"))
    assert (results.error_code, results.base_offset, results.log_start_offset) == (0, 1, 0)
    assert (await client.produce("t", batch(b"d"), acks=-1)).base_offset == 3


async def test_what_is_refused_leaves_no_trace(stage: Stage) -> None:
    """It is looked at twice: by the short way, and by the long one, which says why."""
    client = await stage.client("t")
    for sequence, code in ((0, 0), (5, errors.OUT_OF_ORDER), (1, 0), (0, 0)):
        results = await client.produce("t", batch(b"a", producer=(9, 0, sequence)))
        assert results.error_code == code
    assert (await client.fetch("t", 0)).high_watermark == 2


async def test_a_batch_is_not_kept_twice_while_it_is_stored(slow_stage: Stage) -> None:
    client = await slow_stage.client("t")
    for value in (b"a", b"b"):
        client.ask(produce_request("t", batch(value)), 9)
        await settled()
    (_, waiting) = client.wire._line
    assert isinstance(waiting, RepeatedProduce)
    assert not waiting.records


@pytest.mark.parametrize("version", [7, 9, 13])
async def test_a_large_batch_is_stored_where_it_was_received(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """And it is the entry that it would have been."""
    stored: list[bytes] = []
    client = await stage.client("t")
    topic = await stage.broker.topic(TopicName.parse("t-partition-0"))
    publish = topic.publish
    monkeypatch.setattr(
        topic, "publish", lambda made, *rest: (stored.extend(made), publish(made, *rest))
    )
    came = batch(*[b"x" * 20] * 60)
    await client.produce("t", came)
    first = produce_request("t", came)
    first.topic_data[0].topic_id = stage.front.services.logs.at_once("t", 0).topic_id
    client.ask(first, version)
    await settled()
    frame = framed(first, version, 99, b"c")
    copied = form.wrapped
    monkeypatch.setattr(form, "wrapped", None)
    _, before = feed_large(client.wire, frame, 300)
    assert before == len(stored[0]) - len(came)
    (requested,) = client.wire.take_events()
    client.session.handle(requested)
    await settled()
    assert stored[2] == stored[1] == stored[0] == copied(came, 60, stage.broker.clock.wall_ms())
    assert requested.body is None
