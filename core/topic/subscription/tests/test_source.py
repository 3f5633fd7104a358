"""Entries from the cache at once, else from storage, one load at a time, with patience."""

from itertools import pairwise

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger.read.loaded_entries import LoadedEntries
from magnetar.core.testing.bench import Bench, log_reads, settled
from magnetar.core.topic.subscription import source as module
from magnetar.core.topic.subscription.source import EntrySource


def nothing(*_hidden: int) -> None:
    """Nothing is hidden from anybody here."""


async def test_the_cache_answers_at_once(desk: Bench) -> None:
    topic = await desk.topic()
    topic.ledger.cache_tail(True)
    (place,) = await desk.published(topic, b"x")
    arrived: list[int] = []
    source = EntrySource(topic.ledger, desk.env, lambda: arrived.append(1), nothing)
    found = source.at(place)
    assert found is not None
    assert found[0].payloads[found[1]] == b"x"
    assert source.at((place[0], place[1] + 1)) is None
    await settled()
    assert arrived == [], "what does not exist is not waited for here"


async def test_storage_answers_later_and_in_bulk(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 5)
    arrived: list[int] = []
    source = EntrySource(topic.ledger, desk.env, lambda: arrived.append(1), nothing)
    assert source.at(places[1]) is None
    assert source.at(places[1]) is None
    await settled()
    assert arrived == [1], "one load, however often one asks"
    found = source.at(places[1])
    assert found is not None
    assert (found[0].first_entry, len(found[0].payloads), found[1]) == (1, 4, 0)
    found = source.at(places[3])
    assert found is not None
    assert found[1] == 2
    source.forget()
    assert source.at(places[3], 1) is None


async def test_a_failed_load_is_tried_again_ever_more_slowly(
    desk: Bench, autojump_clock: MockClock
) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"x")
    failures = 4
    at: list[float] = []
    read = topic.ledger.read

    async def failing(*args: object) -> object:
        at.append(autojump_clock.current_time())
        if len(at) <= failures:
            raise StorageFailed("no")
        return await read(*args)  # type: ignore[arg-type]  # as they came

    topic.ledger.read = failing  # type: ignore[method-assign, assignment]
    source = EntrySource(topic.ledger, desk.env, lambda: source.at(places[0]), nothing)
    source.at(places[0])
    while source.at(places[0]) is None:
        await settled()
        autojump_clock.jump(0.05)
    pauses = [later - sooner for sooner, later in pairwise(at)]
    for step, pause in enumerate(pauses):
        assert pause >= module.RETRY_SECONDS * 2**step - 1e-9
    assert len(at) == failures + 1


async def test_who_waits_at_what_is_lost_is_served_elsewhere_at_once(
    desk: Bench, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"0", b"1", b"2")
    desk.ledgers.ledgers[places[0][0]].damaged.add(1)
    arrived: list[float] = []
    source = EntrySource(
        topic.ledger,
        desk.env,
        lambda: arrived.append(autojump_clock.current_time()),
        nothing,
    )
    began = autojump_clock.current_time()
    for _ in range(5):
        assert source.at(places[1]) is None
        await trio.sleep(20)
    assert source.at(places[1]) is None
    await settled()
    assert source.at(places[2]) is None
    requested = autojump_clock.current_time()
    await settled()
    assert source.at(places[2]) is not None
    assert autojump_clock.current_time() == requested > began
    assert caplog.text.count("lost") == 1
    assert "cannot read at" not in caplog.text


async def test_there_is_one_pause_however_often_others_are_asked_for(
    desk: Bench, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"0", b"1", b"2")
    desk.ledgers.ledgers[places[0][0]].damaged.add(1)
    source = EntrySource(topic.ledger, desk.env, lambda: source.at(places[1]), nothing)
    for _ in range(20):
        assert source.at(places[1]) is None
        await settled()
        source.at(places[2])
        await settled()
    await trio.sleep(100)  # until the pauses are long again
    reads = log_reads(monkeypatch)
    await trio.sleep(100)
    assert len(reads) == 100 / module.RETRY_SECONDS_MAX

    source.stop()
    await trio.sleep(100)
    assert len(reads) == 100 / module.RETRY_SECONDS_MAX


async def test_what_is_lost_is_hidden_where_readers_go_on_by_themselves(desk: Bench) -> None:
    desk.storage = replace(desk.storage, skips_lost=True)
    desk.env = replace(desk.env, storage=desk.storage)
    topic = await desk.topic()
    places = await desk.published(topic, b"0", b"1", b"2")
    desk.ledgers.ledgers[places[0][0]].damaged.update((0, 1))
    hidden: list[tuple[int, int, int]] = []
    source = EntrySource(
        topic.ledger, desk.env, lambda: None, lambda *range_: hidden.append(range_)
    )
    assert source.at(places[0]) is None
    await settled()
    found = source.at(places[0])
    assert found is not None
    assert len(found[0].payloads) == 2
    assert hidden == [(places[0][0], 0, 1)]


async def test_nothing_is_held_after_the_end(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 5)
    source = EntrySource(topic.ledger, desk.env, lambda: None, nothing)
    assert source.at(places[0]) is None
    await settled()
    assert desk.env.loaded.held_bytes > 0
    source.stop()
    assert desk.env.loaded.held_bytes == 0
    late = EntrySource(topic.ledger, desk.env, lambda: None, nothing)
    assert late.at(places[0]) is None
    late.stop()
    await settled()
    assert desk.env.loaded.held_bytes == desk.env.loaded.expected_bytes == 0


async def test_what_was_let_go_of_is_loaded_again(desk: Bench) -> None:
    desk.env = replace(desk.env, loaded=LoadedEntries(8))
    topic = await desk.topic()
    places = await desk.published(topic, *[b"12345"] * 2)
    first, second = (EntrySource(topic.ledger, desk.env, lambda: None, nothing) for _ in range(2))
    one_run = 0
    for source in (first, second, first):
        assert source.at(places[1]) is None
        await settled()
        assert source.at(places[1]) is not None
        one_run = one_run or desk.env.loaded.held_bytes
        assert desk.env.loaded.held_bytes == one_run, "the other one has nothing any more"
