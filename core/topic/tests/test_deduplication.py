"""Deduplication: what is sent again is known again, over restarts, and without end of memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.errors import StorageFailed
from magnetar.core.policies import BrokerDefaults, NamespacePolicies, TopicPolicies, effective
from magnetar.core.testing.bench import Bench, settled
from magnetar.core.testing.client import ClientProducer
from magnetar.core.testing.entries import entry
from magnetar.core.topic import deduplication
from magnetar.core.topic.backlog import needed_from
from magnetar.core.topic.deduplication import Books, Verdict, counts
from magnetar.core.topic.topic import Topic

ON = {"deduplication": True}


def numbered(sequence_id: int, **fields: object) -> bytes:
    """A message of producer `p`."""
    return entry(sequence_id=sequence_id, **fields)  # type: ignore[arg-type]  # by name


async def publish(topic: Topic, *sequence_ids: int, name: str = "p") -> list[object]:
    told: list[object] = []
    for sequence_id in sequence_ids:
        topic.publish_once(name, sequence_id, [numbered(sequence_id)], None, told.append)
    await settled()
    return told


def judged(topic: Topic, *sequence_ids: int, name: str = "p") -> list[Verdict]:
    assert topic.once.notes is not None
    return [topic.once.notes.books.judge(name, each) for each in sequence_ids]


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
    """From the notes saved when the topic was closed, or from the messages themselves."""
    topic = await desk.topic(**ON)
    await publish(topic, 0, 1, 5)
    if clean:
        await topic.close()
    again = await desk.topic(**ON)
    assert judged(again, 5, 6) == [DUPLICATE, NEW]
    assert again.subscriptions == {}, "its cursor is nobody's subscription"
    assert again.last_sequence_of("p") == 5


async def test_notes_are_taken_now_and_then_and_let_entries_go(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplication, "SNAPSHOT_ENTRIES", 4)
    topic = await desk.topic(**ON)
    assert topic.once.notes is not None
    await publish(topic, *range(3))
    assert needed_from(topic) == (0, 0)
    await publish(topic, *range(3, 9))
    assert needed_from(topic) > (0, 0)
    topic.once.notes.snapshot_if_idle()
    assert topic.once.notes.mark_delete == topic.ledger.chain.confirmed
    await desk.flush_cursors()
    again = await desk.topic(**ON)  # what runs still is not asked
    assert judged(again, 8, 9) == [DUPLICATE, NEW]


async def test_it_is_switched_on_and_off(desk: Bench) -> None:
    topic = await desk.topic()
    assert topic.last_sequence_of("p") == -1
    assert not topic.looks_at_messages
    await publish(topic, 7)
    on = effective(BrokerDefaults(**ON), NamespacePolicies(), TopicPolicies())
    off = effective(BrokerDefaults(), NamespacePolicies(), TopicPolicies())
    topic.set_policies(on)
    await settled()
    assert judged(topic, 7) == [NEW], "notes begin now"
    await publish(topic, 8)
    topic.set_policies(off)
    await settled()
    assert not topic.once.on
    topic.set_policies(on)
    await settled()
    assert judged(topic, 8) == [NEW], "what was missed meanwhile makes old notes worthless"
    await topic.close()
    assert not (await desk.topic()).once.on
    assert judged(await desk.topic(**ON), 8) == [NEW]


async def test_a_deleted_topic_leaves_no_notes(desk: Bench) -> None:
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
    topic.once.snapshot_if_idle()
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
    assert topic.once.notes is not None
    topic.once.notes.forget_silent((), slow_desk.clock.wall_ms(), 1)
    assert judged(topic, 7, 8) == [DUPLICATE, UNKNOWN]


async def test_a_topic_without_notes_has_nothing_to_forget(desk: Bench) -> None:
    (await desk.topic()).forget_silent_producers()


def test_only_the_last_part_of_a_large_message_counts() -> None:
    assert counts(numbered(1))
    assert [counts(numbered(1, chunk=(b"u", at, 3))) for at in range(3)] == [False, False, True]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5))))
def test_no_verdict_is_wrong(sent: list[tuple[str, int]]) -> None:
    """Each message is stored at once where it is new."""
    books, stored = Books(), set()
    for name, sequence_id in sent:
        verdict = books.judge(name, sequence_id)
        later = any(known >= sequence_id for other, known in stored if other == name)
        assert verdict is (DUPLICATE if later else NEW)
        if verdict is NEW:
            books.push(name, sequence_id)
            books.store(name, sequence_id)
            stored.add((name, sequence_id))


def test_names_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplication, "NAMES_MAX", 3)
    books = Books()
    for name in ("a", "b", "a", "c", "d"):
        books.push(name, 1)
        books.store(name, 1)
    assert list(books.stored) == ["a", "c", "d"], "whoever was not heard longest is forgotten"
    assert len(books.pushed) == 3
