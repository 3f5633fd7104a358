"""The first message of a time, against a plain list of all messages, in order or not."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.ledger_list_record import MIXED
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read import latest_time, time_lookup
from magnetar.core.ledger.read.latest_time import LATEST, UNKNOWN
from magnetar.core.ledger.read.time_lookup import Points, TimedMessage, Times
from magnetar.core.testing.bench import NO_AGE, Bench, Outcome, bench, settled
from magnetar.core.testing.entries import entry

BATCHES = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), max_size=14)


def batch(stamps: list[int]) -> bytes:
    """A Kafka producer's entry with records of these times."""
    records = [Record(place, time, b"k", b"v") for place, time in enumerate(stamps)]
    return form.wrapped(record_batch.batch_of(records, 0, len(stamps)), len(stamps), 1)


async def written(made: Bench, batches: list[list[int]]) -> ManagedLedger:
    """Ledgers of three entries."""
    ledger = await made.ledger()
    await ledger.set_property(MIXED, "")
    for stamps in batches:
        ledger.append([batch(stamps)], [len(stamps)], Outcome())
        await settled()
    return ledger


def first_of(batches: list[list[int]], since_ms: int, begin: int = 0) -> TimedMessage | None:
    every = [time for stamps in batches for time in stamps]
    late = [
        TimedMessage(at, time) for at, time in enumerate(every) if at >= begin and time >= since_ms
    ]
    return late[0] if late else None


def latest_of(batches: list[list[int]]) -> TimedMessage | None:
    every = [time for stamps in batches for time in stamps]
    return TimedMessage(every.index(max(every)), max(every)) if every else None


@given(BATCHES, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_first_of_every_time(batches: list[list[int]], again: bool) -> None:
    async def run() -> None:
        async with bench(NO_AGE) as made:
            ledger = await written(made, batches)
            if again:
                ledger = await made.ledger()
            for since_ms in (13, *range(13)):
                found = await ledger.times.first_since(since_ms)
                assert found == first_of(batches, since_ms)
            assert await ledger.times.latest() == latest_of(batches)

    trio.run(run)


async def test_ledgers_that_are_too_early_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(NO_AGE) as made:
        await written(made, [[place, place + 2] for place in range(12)])
        ledger = await made.ledger()
        read: set[int] = set()
        reads = ledger.read

        async def watched(position: tuple[int, int], *limits: int) -> Any:
            read.add(position[0])
            return await reads(position, *limits)

        monkeypatch.setattr(ledger, "read", watched)
        third = ledger.chain.segments[2]
        assert await ledger.times.first_since(9) == TimedMessage(15, 9)
        assert read == {third.ledger_id}
        assert await ledger.times.first_since(14) is None


async def test_what_a_crash_left_unsaid_is_read() -> None:
    async with bench(NO_AGE) as made:
        await written(made, [[1], [2], [3], [90], [5]])
        ledger = await made.ledger()
        assert [one.others[LATEST] for one in ledger.chain.segments] == ["3", UNKNOWN]
        assert await ledger.times.first_since(50) == TimedMessage(3, 90)
        assert ledger.chain.segments[1].others[LATEST] == "90", "and said from now on"


async def test_a_log_that_becomes_mixed_within_a_ledger() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for time_ms in (70, 1):
            ledger.append([entry(published_ms=time_ms)], None, Outcome())
        await settled()
        await ledger.set_property(MIXED, "")
        for stamps in ([2], [3]):
            ledger.append([batch(stamps)], [1], Outcome())
            await settled()
        assert await ledger.times.first_since(50) == TimedMessage(0, 70)
        assert await ledger.times.first_since(3) == TimedMessage(0, 70)
        assert await ledger.times.latest() == TimedMessage(0, 70)


async def test_pulsars_own_logs_are_taken_to_be_in_order() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for time_ms in range(10, 20):
            ledger.append([entry(published_ms=time_ms)], None, Outcome())
            await settled()
        for time_ms in range(10, 20):
            assert await ledger.times.first_since(time_ms) == TimedMessage(time_ms - 10, time_ms)
        assert await ledger.times.latest() == TimedMessage(9, 19)
        assert await ledger.times.first_since(20) is None


async def test_a_large_message_counts_where_it_ends() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for part in range(3):
            whole = entry(b"x", published_ms=5, chunk=(b"u", part, 3))
            ledger.append([whole], None, Outcome())
        await settled()
        assert await ledger.times.first_since(5) == TimedMessage(2, 5)


async def test_what_is_over_and_what_cannot_be_read_is_passed_over() -> None:
    batches = [[9], [1, 8, 3, 7], [2]]
    async with bench() as made:
        ledger = await written(made, batches)
        torn = batch([99])[:-3]
        ledger.append([torn], [1], Outcome())
        await settled()
        await ledger.cut(3, (0, 1))
        for since_ms in range(11):
            found = await ledger.times.first_since(since_ms)
            assert found == first_of(batches, since_ms, begin=3)
        assert latest_in_pieces() == -1


def latest_in_pieces() -> int:
    """A head that is cut off says nothing."""
    return latest_time.latest_in(batch([99])[:60])


@given(st.lists(st.integers(0, 50), max_size=200), st.integers(0, 51))
def test_points_never_lie_behind(stamps: list[int], since_ms: int) -> None:
    points = Points()
    for entry_id, time in enumerate(stamps):
        points.note(entry_id, time)
    assert all(time < since_ms for time in stamps[: points.before(since_ms)])


def test_points_are_few_and_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_lookup, "POINTS_MAX", 16)
    points = Points()
    for entry_id in range(1000):
        points.note(entry_id, entry_id)
    for since_ms in range(1000):
        assert since_ms - 128 <= points.before(since_ms) <= since_ms


async def test_points_of_few_ledgers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_lookup, "LEDGERS_MAX", 2)
    async with bench(NO_AGE) as made:
        ledger = await written(made, [[place] for place in range(12)])
        requested = Times(ledger)
        for since_ms in (0, 4, 7, 10):
            assert await requested.first_since(since_ms) == TimedMessage(since_ms, since_ms)
        assert len(requested._points) == 2
