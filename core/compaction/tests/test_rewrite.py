"""Compaction against a naive model: any history, compacted at any time, in passes or at once."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.compaction.tests.histories import (
    Message,
    appended,
    batch,
    compacted,
    entries,
    messages,
    wrapped,
)
from magnetar.core.entry import header
from magnetar.core.kernel.errors import BrokerError, StorageFailed
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import START
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.index_lookup import IndexLookup
from magnetar.core.testing.bench import NO_AGE, Bench, bench, settled

FOR_EVER = 10**15
KEYS = st.sampled_from([b"a", b"b", b"c", b"d" * 40])
VALUES = st.one_of(st.none(), st.binary(max_size=3))
BATCHES = st.tuples(
    st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4),
    st.sampled_from([0, 1, 2, 3, 4]),
    st.sampled_from([-1, 7, 8]),
)
STEPS = st.lists(st.one_of(BATCHES, st.just("compact"), st.just("open")), max_size=30)


def naive(every: list[Message], end: int) -> list[Message]:
    """What is left if all before `end` is compacted."""
    last = {one.key: one.index for one in every if one.index < end}
    return [one for one in every if one.index >= end or last[one.key] == one.index]


@given(STEPS, st.sampled_from([1, 2, 1000]))
@settings(max_examples=120, deadline=None)
def test_any_history(steps: list, keys_max: int) -> None:  # type: ignore[type-arg]
    trio.run(_any_history, steps, keys_max)


async def _any_history(steps: list, keys_max: int) -> None:  # type: ignore[type-arg]
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        every: list[Message] = []
        left: list[Message] = []
        for step in steps:
            if step == "open":
                await ledger.close()
                ledger = await made.ledger()
            elif step == "compact":
                if await compacted(made, ledger, retention_ms=FOR_EVER, keys_max=keys_max):
                    left = naive(every, ledger.chain.segments[-1].first_index)
            else:
                records, codec, producer_id = step
                start = len(every)
                new = [Message(start + at, *one) for at, one in enumerate(records)]
                every += new
                left += new
                await appended(ledger, wrapped(batch(records, codec, producer_id)))
            assert await messages(ledger) == left
        await _all_is_well(made, ledger, every, left)


async def _all_is_well(
    made: Bench, ledger: ManagedLedger, every: list[Message], left: list[Message]
) -> None:
    assert ledger.first_index == 0
    assert ledger.confirmed_index == len(every)
    values = {one.key: one.value for one in every}
    assert {one.key: one.value for one in await messages(ledger)} == values
    found, places = await entries(ledger), IndexLookup(ledger)
    for index in range(len(every)):
        behind = [at for at, entry in found if header.read(entry).index >= index]
        assert await places.find(index) == behind[0]
    assert ledger.chain.entries == len(found)
    named = {one.stored_in for one in ledger.chain.segments}
    assert set(made.ledgers.ledgers) == named, "nothing is left over"
    again = await made.ledger()
    assert await messages(again) == left
    assert await entries(again) == found


async def test_positions_stay_what_they_were() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for number in range(12):
            await appended(ledger, wrapped(batch([(b"%d" % (number % 4), b"%d" % number)])))
        before = dict(await entries(ledger))
        assert await compacted(made, ledger)
        after = await entries(ledger)
        assert after == [(at, before[at]) for at, _ in after]
        gone = sorted(before.keys() - dict(after).keys())
        assert len(gone) == 5
        assert [ledger.chain.normal(at) for at in gone] == [
            min(other for other, _ in after if other > at) for at in gone
        ]


async def test_cursors_go_on() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for number in range(12):
            await appended(ledger, wrapped(batch([(b"%d" % (number % 4), b"x"), (b"k", b"y")])))
        places = [at for at, _ in await entries(ledger)]
        cursor = Cursor(made.storage, ledger, "s", START, durable=True)
        await cursor.create()
        for at in (0, 1, 3, 8, 10):
            cursor.ack_range(*places[at], places[at][1])
        cursor.ack_bits(places[6], 0b10, 2)
        await cursor.saved()
        assert await compacted(made, ledger)
        cursor.acks.compacted()
        left = [at for at, _ in await entries(ledger)]
        for one in (cursor, await _opened(made, await made.ledger())):
            waiting = [at for at in left if not one.acks.is_acked(at)]
            assert one.backlog == len(waiting)
            assert one.acks.next_unacked(START) == waiting[0]
            assert one.acks.bits(places[6]) is None, "its messages may have other places"
            assert not one.ack_bits(waiting[0], 0b10, 2)
            for at in (*places, *waiting):
                one.ack_range(*at, at[1])
            assert (one.backlog, one.mark_delete) == (0, ledger.chain.confirmed)


async def _opened(made: Bench, ledger: ManagedLedger) -> Cursor:
    cursor = Cursor(made.storage, ledger, "s", START, durable=True)
    await cursor.open()
    return cursor


async def test_tombstones_go_when_their_time_has_come() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        await appended(ledger, *[wrapped(batch([(b"a", b"1"), (b"b", b"1")]))] * 2)
        await appended(ledger, wrapped(batch([(b"a", None)])))
        await appended(ledger, *[wrapped(batch([(b"c", b"1")]))] * 3)
        assert await compacted(made, ledger)
        assert [(one.key, one.value) for one in await messages(ledger)][:2] == [
            (b"b", b"1"),
            (b"a", None),
        ]
        made.clock.forward(2)
        await appended(ledger, *[wrapped(batch([(b"c", b"1")]))] * 3)
        assert await compacted(made, ledger)
        assert {one.key for one in await messages(ledger)} == {b"b", b"c"}


async def test_what_is_over_does_not_come_along() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for number in range(12):
            await appended(ledger, wrapped(batch([(b"%d" % number, b"x")])))
        await ledger.cut(4, (await entries(ledger))[4][0])
        assert await compacted(made, ledger)
        for one in (ledger, await made.ledger()):
            assert (await messages(one))[0].index == one.first_index == 4


async def test_a_log_that_loses_its_first_ledgers_begins_where_it_did() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for _ in range(10):
            await appended(ledger, wrapped(batch([(b"k", b"x")])))
        assert await compacted(made, ledger)
        assert len(ledger.chain.segments) == 2
        assert ledger.first_index == 0
        await ledger.trim([ledger.chain.segments[0].ledger_id])
        assert ledger.first_index == (await made.ledger()).first_index == 9


@pytest.mark.parametrize("fails_at", range(1, 9))
async def test_a_crash_at_every_write_of_the_list(
    fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        every = []
        for number in range(12):
            every.append(Message(number, b"%d" % (number % 5), b"%d" % number))
            await appended(ledger, wrapped(batch([every[-1][1:]])))
        whole = await messages(ledger)
        calls = 0
        writes = (("metadata", "put"), ("ledgers", "create"), ("ledgers", "delete"))

        def failing(name: str, real):  # type: ignore[no-untyped-def]
            async def instead(*given):  # type: ignore[no-untyped-def]
                nonlocal calls
                calls += 1
                if calls >= fails_at:
                    raise StorageFailed(f"no {name}")
                return await real(*given)

            return instead

        with monkeypatch.context() as patched:
            for store, name in writes:
                owner = getattr(made, store)
                patched.setattr(owner, name, failing(name, getattr(owner, name)))
            try:
                await compacted(made, ledger)
            except BrokerError:
                assert await messages(ledger) == whole
        left = naive(every, ledger.chain.segments[-1].first_index)
        again = await made.ledger()
        assert await messages(again) in (whole, left)
        named = {one.stored_in for one in again.chain.segments}
        assert all(one in named or not kept.entries for one, kept in made.ledgers.ledgers.items())


async def test_who_is_cut_off_leaves_nothing_behind() -> None:
    async with bench(NO_AGE, sync_at_once=False) as made:
        ledger = await made.ledger()
        for number in range(12):
            await _synced(made, ledger, wrapped(batch([(b"k", b"%d" % number)])))
        whole = await messages(ledger)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(compacted, made, ledger)
            await settled()  # what is left waits to be stored
            nursery.cancel_scope.cancel()
        assert await messages(ledger) == await messages(await made.ledger()) == whole
        assert len(made.ledgers.ledgers) == 4


async def _synced(made: Bench, ledger: ManagedLedger, tail: bytes) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(appended, ledger, tail)
        await settled()
        made.ledgers.sync()


async def test_a_reader_that_has_just_learnt_of_an_entry() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for _ in range(6):
            await appended(ledger, wrapped(batch([(b"k", b"x")])))
        (gone, _), *_ = await entries(ledger)
        assert await compacted(made, ledger)
        part = await ledger.read(gone, 5, 1000)
        assert (part.ledger_id, part.first_entry, len(part.payloads)) == (*gone, 1)
        assert part.header(0).index == -1


async def test_a_ledger_of_what_was_left_is_lost() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for number in range(12):
            await appended(ledger, wrapped(batch([(b"%d" % number, b"x")])))
        assert await compacted(made, ledger)
        last = ledger.chain.segments[-1].ledger_id
        await made.ledgers.delete(ledger.chain.segments[0].stored_in)
        again = await made.ledger()
        assert [one.ledger_id for one in again.chain.segments] == [last]
        assert [one.index for one in await messages(again)] == [9, 10, 11]


async def test_what_was_left_is_the_end_when_the_last_ledger_is_lost() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for number in range(12):
            await appended(ledger, wrapped(batch([(b"%d" % (number % 4), b"x")])))
        assert await compacted(made, ledger)
        await ledger.close()
        left = (await messages(ledger))[:-3] if ledger.chain.entries else []
        await made.ledgers.delete(ledger.chain.segments[-1].ledger_id)
        again = await made.ledger()
        assert await messages(again) == left
        assert again.next_index == 12
        await appended(again, wrapped(batch([(b"new", b"x")])))
        assert [one.index for one in await messages(again)] == [*(one.index for one in left), 12]


async def test_a_write_of_the_list_that_failed_and_was_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        for number in range(12):
            await appended(ledger, wrapped(batch([(b"%d" % (number % 5), b"x")])))
        whole = await messages(ledger)
        put = made.metadata.put
        stored: list[bytes] = []

        async def unsure(path: str, value: bytes, expected: int) -> int:
            version = await put(path, value, expected)
            stored.append(value)
            if len(stored) == 2:  # the first names the new ledger as doomed
                raise StorageFailed("nobody knows")
            return version

        with monkeypatch.context() as patched:
            patched.setattr(made.metadata, "put", unsure)
            with pytest.raises(StorageFailed):
                await compacted(made, ledger)
        assert await messages(ledger) == whole
        again = await made.ledger()
        assert len(await messages(again)) < len(whole)
        assert set(made.ledgers.ledgers) == {one.stored_in for one in again.chain.segments}
