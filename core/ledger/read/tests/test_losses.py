"""Entries that cannot be read: found, said and counted once; what is beside them is read."""

import pytest
import trio
import trio.testing

from magnetar.core.entry import header
from magnetar.core.entry.empty import EMPTY
from magnetar.core.kernel.errors import Corrupted, LedgerNotFound
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.index_lookup import IndexLookup
from magnetar.core.ledger.read.losses import Lost
from magnetar.core.testing.bench import Bench, bench, stored
from magnetar.core.testing.ledgers import MemoryLedger
from magnetar.core.topic.seek import find_by_time

COUNT = 10


async def rotten(desk: Bench, *entries: int) -> ManagedLedger:
    """A log of ten entries in one ledger, some of which are damaged."""
    ledger = await desk.ledger()
    await stored(ledger, *[b"%d" % i for i in range(COUNT)])
    await ledger.roll()
    desk.ledgers.ledgers[ledger.chain.segments[0].ledger_id].damaged.update(entries)
    return ledger


WIDE = RollLimits(entries_max=1_000, age_ms_min=0)


async def test_what_is_lost_is_said_and_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    async with bench(WIDE) as desk:
        ledger = await rotten(desk, 3, 4, 7)
        at = ledger.chain.first[0]
        assert len((await ledger.read((at, 0), COUNT, 10_000)).payloads) == 3
        for entry_id in (4, 3, 4, 7):
            with pytest.raises(Corrupted):
                await ledger.read((at, entry_id), COUNT, 10_000)
        assert ledger.losses.ranges == [Lost(at, 3, 4, 3, 5), Lost(at, 7, 7, 7, 8)]
        assert (ledger.losses.count, ledger.losses.entries) == (2, 3)
        assert caplog.text.count("are lost") == 2
        assert f"entries {at}:3 to {at}:4 (messages 3 to 4) are lost" in caplog.text
        assert len((await ledger.read((at, 5), COUNT, 10_000)).payloads) == 2


async def test_two_who_come_at_once_find_one_range(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(WIDE) as desk:
        ledger = await rotten(desk, 3, 4)

        async def reads(entry_id: int) -> None:
            with pytest.raises(Corrupted):
                await ledger.read((ledger.chain.first[0], entry_id), 1, 1)

        looked = []
        stored_in = type(await desk.ledgers.open(ledger.chain.first[0], recover=False))
        damage = stored_in.damage

        async def slowly(reader, entry_id: int) -> tuple[int, int]:
            looked.append(entry_id)
            await trio.testing.wait_all_tasks_blocked()
            return await damage(reader, entry_id)

        monkeypatch.setattr(stored_in, "damage", slowly)
        async with trio.open_nursery() as nursery:
            for entry_id in (3, 4, 3):
                nursery.start_soon(reads, entry_id)
        assert ledger.losses.count == 1
        assert len(looked) == 1, "storage looks at each entry, of which there may be millions"


async def test_folds_go_round() -> None:
    async with bench(WIDE) as desk:
        ledger = await rotten(desk, 3, 4)
        at = ledger.chain.first[0]
        part = await ledger.losses.read_round((at, 3), COUNT, 10_000)
        assert part.payloads == [EMPTY] * 2
        assert (part.ledger_id, part.first_entry) == (at, 3)
        assert (await ledger.losses.read_round((at, 4), COUNT, 10_000)).payloads == [EMPTY]
        assert (await ledger.losses.read_round((at, 5), 1, 1)).header(0).index == 5


async def test_a_ledger_that_is_gone_is_one_range() -> None:
    async with bench() as desk:
        ledger = await desk.ledger()
        for _ in range(3):
            await stored(ledger, *[b"x"] * 3)
        gone = ledger.chain.segments[1].ledger_id
        del desk.ledgers.ledgers[gone]
        with pytest.raises(Corrupted):
            await ledger.read((gone, 1), 1, 1)
        assert ledger.losses.ranges == [Lost(gone, 0, 2, 3, 6)]
        with pytest.raises(LedgerNotFound):
            await ledger.read((1000, 0), 1, 1)  # none of this log
        await ledger.trim([segment.ledger_id for segment in ledger.chain.segments[:2]])
        assert ledger.losses.ranges == []
        assert ledger.losses.count == 1


async def test_what_can_be_read_again_is_lost_no_more() -> None:
    async with bench(WIDE) as desk:
        ledger = await rotten(desk, 3)
        at = ledger.chain.first[0]
        with pytest.raises(Corrupted):
            await ledger.read((at, 3), 1, 1)
        desk.ledgers.ledgers[at].damaged.clear()
        await ledger.read((at, 3), 1, 1)
        assert ledger.losses.ranges == []


async def of_one(_reader: object, entry_id: int) -> tuple[int, int]:
    """What many bookies know of the extent of damage (`bookie/client/quorum/reader.py`)."""
    await trio.lowlevel.checkpoint()
    return entry_id, entry_id


@pytest.mark.parametrize("alone", [False, True], ids=["extent", "alone"])
@pytest.mark.parametrize("damaged", [(4,), (0, 1), (8, 9), (3, 4, 5, 6), tuple(range(10)), (2, 7)])
async def test_every_place_is_found_round_the_damage(
    damaged: tuple[int, ...], alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if alone:
        monkeypatch.setattr(MemoryLedger, "damage", of_one)
    async with bench(WIDE) as desk:
        ledger = await rotten(desk, *damaged)
        ledger._tail.clear()
        at, places = ledger.chain.first[0], IndexLookup(ledger)
        for index in range(COUNT):
            ledger_id, entry_id = await places.find(index)
            assert ledger_id == at
            if index not in damaged:
                assert entry_id == index
            else:  # the beginning of the range: whoever reads there hears of it
                assert entry_id in damaged
                assert set(range(entry_id, index + 1)) <= set(damaged)
        await find_by_time(ledger, 1)
        assert ledger.losses.entries in (0, len(damaged))


async def test_a_range_takes_in_its_known_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryLedger, "damage", of_one)
    async with bench(WIDE) as desk:
        ledger = await rotten(desk, 4)
        at = ledger.chain.first[0]
        for entry_id, lost in ((4, Lost(at, 4, 4, 4, 5)), (6, Lost(at, 3, 6, 3, 7))):
            with pytest.raises(Corrupted):
                await ledger.read((at, entry_id), 1, 1)
            assert ledger.losses.ranges == [lost]
            assert ledger.losses.entries == lost.last - lost.first + 1
            desk.ledgers.ledgers[at].damaged.update((3, 5, 6))


@pytest.mark.parametrize("alone", [False, True], ids=["extent", "alone"])
async def test_a_log_that_ends_in_damage_gives_no_index_twice(
    alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if alone:
        monkeypatch.setattr(MemoryLedger, "damage", of_one)
    async with bench(WIDE) as desk:
        ledger = await desk.ledger()
        await stored(ledger, *[b"x"] * 5)
        desk.ledgers.ledgers[ledger.chain.first[0]].damaged.update((3, 4))
        again = await desk.ledger()
        assert again.next_index >= 5
        assert again.chain.confirmed[1] == 4
        await stored(again, b"on")
        last = await again.read(again.chain.confirmed, 1, 1)
        assert header.read(last.payloads[0]).index >= 5
