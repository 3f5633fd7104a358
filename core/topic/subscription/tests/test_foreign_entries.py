"""Batches of Kafka's producers in the hands of Pulsar's consumers, of every type."""

from __future__ import annotations

import pytest

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.pulsar.messages import PulsarMessage
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import MIXED
from magnetar.core.testing.bench import Bench
from magnetar.core.testing.client import attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription import foreign_entries
from magnetar.core.topic.subscription.subscription import SubscriptionType

EVERY_TYPE = list(SubscriptionType)


def batch(*values: bytes, attributes: int = 0) -> bytes:
    records = [Record(place, 1, b"k", value) for place, value in enumerate(values)]
    made = bytearray(record_batch.batch_of(records, 0, len(values)))
    made[22] |= attributes
    return bytes(made)


async def wrote(desk: Bench, topic: PersistentTopic, *batches: bytes) -> list[Position]:
    await topic.ledger.set_property(MIXED, "")
    counts = [record_batch.header_of(each).last_delta + 1 for each in batches]
    entries = [form.wrapped(each, count, 1) for each, count in zip(batches, counts, strict=True)]
    results: list[object] = []
    topic.publish(entries, counts, results.append)
    await desk.dispatch()
    (first,) = results
    assert isinstance(first, tuple)
    return [(first[0], first[1] + place) for place in range(len(batches))]


def values(payloads: list[bytes]) -> list[list[bytes | None]]:
    return [[record.value for record in PulsarMessage(payload).records()] for payload in payloads]


@pytest.mark.parametrize("kind", EVERY_TYPE)
@pytest.mark.parametrize("before", [True, False], ids=["backlog", "tail"])
async def test_batches_come_as_messages(desk: Bench, kind: SubscriptionType, before: bool) -> None:
    topic = await desk.topic()
    await topic.subscription("s", start=(-1, -1))
    consumer = await attached(topic, kind, permits=0 if before else 100)
    places = await wrote(desk, topic, batch(b"a", b"b"), batch(b"c"))
    consumer.flow(100)
    await desk.dispatch()
    assert consumer.got == places
    assert values(consumer.payloads) == [[b"a", b"b"], [b"c"]]


@pytest.mark.parametrize("kind", EVERY_TYPE)
async def test_permits_are_paid_for_what_was_given(desk: Bench, kind: SubscriptionType) -> None:
    topic = await desk.topic()
    consumer = await attached(topic, kind, permits=100)
    await wrote(desk, topic, batch(b"a", b"b", b"c"), batch(b"x", attributes=record_batch.CONTROL))
    assert consumer.consumer.permits == 97


@pytest.mark.parametrize("kind", EVERY_TYPE)
@pytest.mark.parametrize(
    "hidden", [batch(b"x", attributes=record_batch.CONTROL), batch(b"x", attributes=7)]
)
async def test_what_is_nothing_to_consumers_is_done_with(
    desk: Bench, kind: SubscriptionType, hidden: bytes
) -> None:
    topic = await desk.topic()
    consumer = await attached(topic, kind, permits=100)
    first, _, last = await wrote(desk, topic, batch(b"a"), hidden, batch(b"b"))
    assert consumer.got == [first, last]
    cursor = topic.subscriptions["s"].cursor
    assert cursor.backlog == 2
    consumer.ack(first)
    assert cursor.backlog == 1


@pytest.mark.parametrize("kind", EVERY_TYPE)
async def test_what_is_hidden_first_of_all_is_not_delivered(
    desk: Bench, kind: SubscriptionType
) -> None:
    topic = await desk.topic()
    consumer = await attached(topic, kind, permits=100)
    control = batch(b"x", attributes=record_batch.CONTROL)
    *_, last = await wrote(desk, topic, control, control, batch(b"b"))
    assert consumer.got == [last]
    cursor = topic.subscriptions["s"].cursor
    assert cursor.backlog == 1
    consumer.ack(last)
    assert cursor.backlog == 0


async def test_both_forms_side_by_side(desk: Bench) -> None:
    topic = await desk.topic()
    consumer = await attached(topic, SubscriptionType.SHARED, permits=100)
    await desk.published(topic, entry(b"before"))
    await wrote(desk, topic, batch(b"kafka"))
    await desk.published(topic, entry(b"after"))
    await desk.dispatch()
    assert values(consumer.payloads) == [[b"before"], [b"kafka"], [b"after"]]


async def test_what_comes_back_has_crossed_too(desk: Bench) -> None:
    topic = await desk.topic()
    consumer = await attached(topic, SubscriptionType.SHARED, permits=100)
    (place,) = await wrote(desk, topic, batch(b"a", b"b"))
    consumer.take()
    consumer.nack(place)
    await desk.dispatch()
    assert consumer.redelivered == {place: 1}
    assert values(consumer.payloads) == [[b"a", b"b"]]


async def test_large_ones_cross_elsewhere_and_few_at_a_time(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_entries, "MESSAGES_ON_THE_LOOP", 1)
    monkeypatch.setattr(foreign_entries, "CROSSED_BYTES_MAX", 100)
    topic = await desk.topic()
    consumer = await attached(topic, SubscriptionType.EXCLUSIVE, permits=100)
    await wrote(desk, topic, *[batch(b"a" * 60, b"b" * 60)] * 5)
    while len(consumer.got) < 5:
        await desk.dispatch()
    assert values(consumer.payloads) == [[b"a" * 60, b"b" * 60]] * 5
