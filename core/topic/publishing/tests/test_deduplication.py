"""Deduplication: what is sent again is known again, over restarts, and without end of memory."""

import pytest

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.bench import Bench, settled
from magnetar.core.testing.client import ClientProducer
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.publishing.sequences import Verdict

ON = {"deduplication": True}


def numbered(sequence_id: int, **fields: object) -> bytes:
    """A message of producer `p`."""
    return entry(sequence_id=sequence_id, **fields)  # type: ignore[arg-type]  # by name


async def publish(topic: PersistentTopic, *sequence_ids: int, name: str = "p") -> list[object]:
    results: list[object] = []
    for sequence_id in sequence_ids:
        topic.publish_once(name, sequence_id, [numbered(sequence_id)], None, results.append)
    await settled()
    return results


def judged(topic: PersistentTopic, *sequence_ids: int, name: str = "p") -> list[Verdict]:
    sequences = topic.deduplication.sequences
    assert sequences is not None
    return [sequences.judge(name, each) for each in sequence_ids]


NEW, DUPLICATE, UNKNOWN = Verdict.NEW, Verdict.DUPLICATE, Verdict.UNKNOWN


async def test_stored_on_its_way_and_new(slow_desk: Bench) -> None:
    topic = await slow_desk.topic(**ON)
    await publish(topic, 0)
    assert judged(topic, 0, 1) == [UNKNOWN, NEW]
    slow_desk.ledgers.sync()
    assert judged(topic, 0, 1) == [DUPLICATE, NEW]
    assert judged(topic, 0, name="another") == [NEW]
    assert topic.last_sequence_of("p") == 0


async def test_what_failed_may_come_again(slow_desk: Bench) -> None:
    topic = await slow_desk.topic(**ON)
    await publish(topic, 0)
    slow_desk.ledgers.sync()
    await publish(topic, 1)
    for ledger in slow_desk.ledgers.ledgers.values():
        ledger.fail(StorageFailed("no disk"))
    await settled()
    assert judged(topic, 0, 1) == [DUPLICATE, NEW]


@pytest.mark.parametrize("clean", [True, False])
async def test_a_restart_forgets_nothing(desk: Bench, clean: bool) -> None:
    """From the snapshot taken when the topic was closed, or from the messages themselves."""
    topic = await desk.topic(**ON)
    await publish(topic, 0, 1, 5)
    if clean:
        await topic.close()
    again = await desk.topic(**ON)
    assert judged(again, 5, 6) == [DUPLICATE, NEW]
    assert again.subscriptions == {}, "its cursor is nobody's subscription"
    assert again.last_sequence_of("p") == 5


async def test_snapshots_let_entries_go(desk: Bench) -> None:
    topic = await desk.topic(**ON)
    await publish(topic, *range(7))
    await topic.ledger.trim([topic.ledger.chain.segments[0].ledger_id])
    assert topic.ledger.chain.first == (topic.ledger.chain.segments[0].ledger_id, 0)
    again = await desk.topic(**ON)  # what runs still is not asked
    assert judged(again, 0, 6, 7) == [DUPLICATE, DUPLICATE, NEW]


async def test_snapshots_are_taken_every_few_entries_but_not_twice_a_second(desk: Bench) -> None:
    topic = await desk.topic(**ON, deduplication_entries_interval=2)
    await publish(topic, 0, 1, 2, 3)
    (fold,) = topic.ledger.followers
    first = fold.position
    assert first > (-1, -1)
    await publish(topic, 4, 5)
    assert fold.position == first
    desk.clock.forward(1)
    await publish(topic, 6)
    assert fold.position == topic.ledger.chain.confirmed


async def test_snapshots_are_taken_when_the_last_one_is_old(desk: Bench) -> None:
    topic = await desk.topic(**ON)
    await publish(topic, 0)
    (fold,) = topic.ledger.followers
    await topic.deduplication.snapshot_if_due(60)
    assert fold.position == topic.ledger.chain.confirmed, "the first one is due at once"
    first = fold.position
    await publish(topic, 1)
    for forward, seconds in ((59, 60), (1000, 0), (1000, 1060 + 1000)):
        desk.clock.forward(forward)
        await topic.deduplication.snapshot_if_due(seconds)
        assert fold.position == first
    desk.clock.forward(1)
    await topic.deduplication.snapshot_if_due(2060)
    assert fold.position == topic.ledger.chain.confirmed


async def test_snapshots_by_entries_delay_those_by_time(desk: Bench) -> None:
    topic = await desk.topic(**ON, deduplication_entries_interval=2)
    desk.clock.forward(50)
    await publish(topic, 0, 1)
    (fold,) = topic.ledger.followers
    assert fold.position == (by_entries := topic.ledger.chain.confirmed)
    await publish(topic, 2)
    desk.clock.forward(59)
    await topic.deduplication.snapshot_if_due(60)
    assert fold.position == by_entries
    desk.clock.forward(1)
    await topic.deduplication.snapshot_if_due(60)
    assert fold.position > by_entries


async def test_a_snapshot_that_is_due_and_fails_comes_later(
    desk: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_asked: object) -> int:
        raise StorageFailed("no disk")

    topic = await desk.topic(**ON)
    await publish(topic, 0)
    (fold,) = topic.ledger.followers
    desk.ledgers.create_failure = StorageFailed("no disk")
    with monkeypatch.context() as broken:
        broken.setattr(desk.metadata, "put", refuse)
        await topic.deduplication.snapshot_if_due(60)
    assert fold.position < topic.ledger.chain.confirmed
    assert "no snapshot of sequence ids: no disk" in caplog.text
    desk.ledgers.create_failure = None
    desk.clock.forward(60)
    await topic.deduplication.snapshot_if_due(60)
    assert fold.position == topic.ledger.chain.confirmed


async def test_without_deduplication_nothing_is_due(desk: Bench) -> None:
    topic = await desk.topic()
    await publish(topic, 0)
    await topic.deduplication.snapshot_if_due(1)
    assert not await desk.metadata.children(topic.ledger.path)


async def test_a_cursor_of_an_older_version_is_read(desk: Bench) -> None:
    """Bytes of one, from when they were put together without a fold."""
    topic = await desk.topic()
    await publish(topic, 0, 1)
    await topic.close()
    old = bytes.fromhex("08ffffffffffffffffff01100018012a050a017010072a050a017110023005")
    await desk.metadata.put(f"{topic.ledger.path}/pulsar.dedup", old, ABSENT)
    again = await desk.topic(**ON)
    assert [again.last_sequence_of(name) for name in "pq"] == [7, 2]


async def test_it_stays_on_if_it_cannot_be_turned_off(desk: Bench) -> None:
    topic = await desk.topic(**ON)
    await publish(topic, 7)
    delete = desk.metadata.delete

    async def fail(path: str, expected: int) -> None:
        raise StorageFailed("no")

    desk.metadata.delete = fail  # type: ignore[method-assign]
    off = effective(Effective(), NamespacePolicies(), TopicPolicies())
    topic.set_policies(off)
    await settled()
    assert topic.deduplication.on
    desk.metadata.delete = delete  # type: ignore[method-assign]
    await publish(topic, 8)
    assert judged(await desk.topic(**ON), 8, 9) == [DUPLICATE, NEW]


async def test_it_is_switched_on_and_off(desk: Bench) -> None:
    topic = await desk.topic()
    assert topic.last_sequence_of("p") == -1
    assert not topic.looks_at_messages
    await publish(topic, 7)
    on = effective(Effective(**ON), NamespacePolicies(), TopicPolicies())
    off = effective(Effective(), NamespacePolicies(), TopicPolicies())
    topic.set_policies(on)
    await settled()
    assert judged(topic, 7) == [NEW], "it begins now"
    await publish(topic, 8)
    topic.set_policies(off)
    await settled()
    assert not topic.deduplication.on
    topic.set_policies(on)
    await settled()
    assert judged(topic, 8) == [NEW], "it has missed what came meanwhile"
    await topic.close()
    assert not (await desk.topic()).deduplication.on
    assert judged(await desk.topic(**ON), 8) == [NEW]


async def test_a_deleted_topic_leaves_no_cursor(desk: Bench) -> None:
    topic = await desk.topic(**ON)
    await publish(topic, 7)
    await topic.delete()
    assert judged(await desk.topic(**ON), 7) == [NEW]


async def test_who_is_away_for_hours_is_forgotten(desk: Bench) -> None:
    topic = await desk.topic(**ON, deduplication_inactivity_minutes=360)
    stays = ClientProducer("stays")
    await topic.attach_producer(stays.producer)
    for name in ("stays", "away", "comes now and then"):
        await publish(topic, 7, name=name)
    topic.forget_silent_producers()
    for hour in range(6):
        desk.clock.forward(3600)
        await publish(topic, 8 + hour, name="comes now and then")
        assert judged(topic, 7, name="away") == [DUPLICATE]
        topic.forget_silent_producers()
    assert judged(topic, 7, name="away") == [NEW]
    assert judged(topic, 7, name="stays") == [DUPLICATE]
    assert judged(topic, 13, name="comes now and then") == [DUPLICATE]
    await topic.close()
    again = await desk.topic(**ON)
    assert again.last_sequence_of("away") == -1
    assert judged(again, 7, name="stays") == [DUPLICATE]


async def test_nobody_is_forgotten_where_that_is_not_wanted_or_a_message_is_on_its_way(
    slow_desk: Bench,
) -> None:
    topic = await slow_desk.topic(**ON, deduplication_inactivity_minutes=0)
    await publish(topic, 7)
    slow_desk.ledgers.sync()
    await settled()
    topic.forget_silent_producers()
    slow_desk.clock.forward(1_000_000)
    topic.forget_silent_producers()
    assert judged(topic, 7) == [DUPLICATE]
    await publish(topic, 8)
    topic.deduplication.forget_silent((), slow_desk.clock.wall_ms(), 1)
    assert judged(topic, 7, 8) == [DUPLICATE, UNKNOWN]


async def test_a_topic_without_deduplication_has_nothing_to_forget(desk: Bench) -> None:
    (await desk.topic()).forget_silent_producers()
