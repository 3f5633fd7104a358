"""Entries of a compacted ledger by position and by time, across chunks."""

from __future__ import annotations

from collections.abc import Collection

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.compacted import compacted_reader, positions
from magnetar.core.ledger.compacted.compacted_reader import CompactedReader
from magnetar.core.ledger.compacted.positions import PositionWriter, packed
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.ledger_list_record import CompactedLedger
from magnetar.core.testing.bench import NAME, Bench, bench, settled
from magnetar.core.testing.entries import entry


async def reader_of(
    made: Bench,
    entries: dict[Position, bytes],
    *,
    directory: bytes | None = None,
    damaged: Collection[int] | None = None,
) -> CompactedReader:
    """`damaged` are places of entries; a reader of such a ledger skips what is lost."""
    writer = await made.ledgers.create({})
    places = PositionWriter()
    for one in entries:
        places.add(one)
    behind = places.finished()
    if directory is not None:
        behind[-1] = directory
    writer.append([*entries.values(), *behind], lambda _error: None)
    await settled()
    await writer.close()
    about = CompactedLedger(writer.ledger_id, len(entries), 9, max(entries), 7, 1)
    made.ledgers.ledgers[writer.ledger_id].damaged.update(damaged or ())
    return CompactedReader(made.ledgers, NAME, about, skips_lost=damaged is not None)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (positions, compacted_reader):
        monkeypatch.setattr(module, "POSITIONS_PER_CHUNK", 3)


PLACES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=20, unique=True
).map(sorted)


async def test_each_position() -> None:
    async with bench() as made:
        places = [(ledger_id, entry_id) for ledger_id in (2, 3, 7) for entry_id in (0, 4, 5, 8)]
        reader = await reader_of(made, {one: b"%d:%d" % one for one in places})
        for ledger_id in range(9):
            for entry_id in range(10):
                behind = [one for one in places if one >= (ledger_id, entry_id)]
                block = await reader.block((ledger_id, entry_id), 1000)
                assert block.positions == behind[: len(block.positions)]
                assert block.entries == [b"%d:%d" % one for one in block.positions]
                assert bool(block.positions) == bool(behind)
                assert block.is_last == (block.positions == behind)


@given(PLACES, st.integers(0, 60))
def test_by_time(places: list[Position], since_ms: int) -> None:
    async def run() -> None:
        async with bench() as made:
            times = {one: 10 + 2 * number for number, one in enumerate(places)}
            entries = {one: entry(b"x", published_ms=at) for one, at in times.items()}
            reader = await reader_of(made, entries)
            young = [one for one in places if times[one] >= since_ms]
            assert await reader.find_by_time(since_ms) == (young[0] if young else None)

    trio.run(run)


async def test_a_directory_of_something_else() -> None:
    async with bench() as made:
        entries: dict[Position, bytes] = {(1, at): b"x" for at in range(5)}
        reader = await reader_of(made, entries, directory=packed([(1, 0), (1, 4)]))
        with pytest.raises(Corrupted):
            await reader.block((1, 4), 100)
        reader = await reader_of(made, entries, directory=packed([(1, 0)]))
        with pytest.raises(Corrupted):
            await reader.block(START, 100)


@given(PLACES, st.data())
def test_what_is_lost_is_skipped(places: list[Position], data: st.DataObject) -> None:
    """Entries, and chunks of positions: all others are read, and found by their times."""
    chunks = positions.chunks_of(len(places))
    damaged = data.draw(st.sets(st.integers(0, len(places) + chunks - 1)))
    since_ms = data.draw(st.integers(0, 60))

    async def run() -> None:
        async with bench() as made:
            times = {one: 10 + 2 * number for number, one in enumerate(places)}
            entries = {one: entry(b"x", published_ms=at) for one, at in times.items()}
            left = [
                one
                for at, one in enumerate(places)
                if not {at, len(places) + at // positions.POSITIONS_PER_CHUNK} & damaged
            ]
            reader = await reader_of(made, entries, damaged=damaged)
            for position in (START, *places, (9, 9)):
                found, is_last, asked = list[Position](), False, position
                while not is_last:
                    block = await reader.block(asked, 100)
                    found += block.positions
                    is_last = block.is_last
                    asked = block.positions[-1] if block.positions else asked
                    asked = (asked[0], asked[1] + 1)
                assert found == [one for one in left if one >= position]
            last = await reader.last()
            assert (last and last[0]) == (left[-1] if left else None)
            since = await reader.find_by_time(since_ms)
            young = [one for one in left if times[one] >= since_ms]
            if since is None:
                assert not young
            else:
                assert [one for one in left if one >= since] == young

    trio.run(run)


async def test_nothing_is_skipped_unless_that_is_set() -> None:
    async with bench() as made:
        entries: dict[Position, bytes] = {(1, at): b"x" for at in range(5)}
        reader = await reader_of(made, entries)
        made.ledgers.ledgers[reader.about.ledger_id].damaged.add(1)
        assert (await reader.block(START, 100)).positions == [(1, 0)]
        with pytest.raises(Corrupted):
            await reader.block((1, 1), 100)
        assert (await reader.block((1, 2), 100)).positions == [(1, 2)], "where a seek leads"
