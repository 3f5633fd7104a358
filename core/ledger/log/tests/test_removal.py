"""Logs that lose their beginning: what is read then, what is stored, what a failure does."""

from collections.abc import AsyncIterator

import pytest

from magnetar.core.entry import header
from magnetar.core.kernel.errors import BrokerError, Corrupted, Fenced, StorageFailed
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.ledger_owner import properties_of
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.testing.bench import NO_AGE, Bench, Outcome, bench, settled, stored


async def filled(made: Bench, entries: int = 8) -> tuple[ManagedLedger, list[Position]]:
    """Ledgers of three entries, with two messages in each entry."""
    ledger = await made.ledger()
    outcome = [Outcome() for _ in range(entries)]
    for place, done in enumerate(outcome):
        ledger.append([b"%d" % place], [2], done)
        await settled()
    places = [done.result for done in outcome if isinstance(done.result, tuple)]
    assert len(places) == entries
    return ledger, places


async def read(ledger: ManagedLedger) -> list[bytes]:
    found, position = [], ledger.chain.first
    while ledger.chain.has(position):
        (entry,) = (await ledger.read(position, 1, 1)).payloads
        found.append(entry[header.read(entry).size :])
        position = ledger.chain.after(position)
    return found


async def test_a_cut_holds_for_everybody_and_for_ever() -> None:
    async with bench(NO_AGE) as made:
        ledger, places = await filled(made)
        cursor = Cursor(made.storage, ledger, "s", START, durable=True)
        await cursor.create()
        await ledger.cut(9, places[4])
        assert len(ledger.chain.segments) == 2, "the first ledger is gone at once"
        assert places[0][0] not in made.ledgers.ledgers
        for again in (ledger, await made.ledger()):
            assert again.first_index == 9
            assert again.chain.first == again.chain.normal(START) == places[4]
            assert await read(again) == [b"4", b"5", b"6", b"7"]
            assert again.chain.entries == 4
        assert cursor.read_from == places[4]
        assert cursor.backlog == 4
        assert cursor.acks.next_unacked(START) == places[4]


async def test_a_cut_never_goes_back() -> None:
    async with bench(NO_AGE) as made:
        ledger, places = await filled(made)
        await ledger.cut(8, places[4])
        await ledger.cut(3, places[1])
        assert (ledger.first_index, ledger.chain.first) == (8, places[4])


async def test_all_of_it_may_go() -> None:
    async with bench(NO_AGE) as made:
        ledger, _ = await filled(made)
        await ledger.cut(16, ledger.chain.after(ledger.chain.confirmed))
        assert made.ledgers.ledgers == {}
        for again in (ledger, await made.ledger()):
            assert (again.first_index, again.next_index) == (16, 16)
            assert await read(again) == []
        again = await made.ledger()
        await stored(again, b"new")
        assert await read(again) == [b"new"]
        assert again.first_index == 16


async def test_retention_goes_on_where_a_cut_was() -> None:
    async with bench(NO_AGE) as made:
        ledger, places = await filled(made)
        await ledger.cut(9, places[4])
        await ledger.trim([places[4][0]])
        assert (ledger.first_index, ledger.chain.first) == (12, places[6])
        assert (await made.ledger()).first_index == 12


async def test_a_ledger_may_go_whole_that_the_log_began_in_the_middle_of() -> None:
    """Until the next append there was no other, and readers were sent into the deleted one."""
    async with bench(NO_AGE) as made:
        ledger, places = await filled(made)
        await ledger.cut(13, places[6])
        cursor = Cursor(made.storage, ledger, "s", START, durable=True)
        await ledger.roll()
        await ledger.trim([places[6][0]])
        assert made.ledgers.ledgers == {}
        for again in (ledger, await made.ledger()):
            assert again.first_index == 16
            assert not again.chain.has(again.chain.first)
            assert again.chain.entries == 0
            assert await read(again) == []
        assert cursor.backlog == 0
        await stored(ledger, b"new")
        assert await read(ledger) == [b"new"]


@pytest.mark.parametrize("trim", [True, False], ids=["trim", "cut"])
async def test_what_could_not_be_stored_has_not_happened(
    trim: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(NO_AGE) as made:
        ledger, places = await filled(made)

        async def failing(path: str, value: bytes, expected: int) -> int:
            raise StorageFailed("no")

        with monkeypatch.context() as patched:
            patched.setattr(made.metadata, "put", failing)
            with pytest.raises(BrokerError):
                await (ledger.trim([places[0][0]]) if trim else ledger.cut(9, places[4]))
        assert ledger.first_index == 0
        assert await read(ledger) == [b"%d" % place for place in range(8)]


@pytest.fixture
async def at_once() -> AsyncIterator[Bench]:
    async with bench(NO_AGE) as made:
        yield made


async def test_trim_changes_the_list_first(at_once: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    ledger = await at_once.ledger()
    for _ in range(2):
        await stored(ledger, b"1", b"2", b"3")
    put, delete = at_once.metadata.put, at_once.ledgers.delete

    async def noted_put(path: str, value: bytes, expected: int) -> int:
        order.append("list")
        return await put(path, value, expected)

    async def noted_delete(ledger_id: int) -> None:
        order.append(f"delete {ledger_id}")
        await delete(ledger_id)

    monkeypatch.setattr(at_once.metadata, "put", noted_put)
    monkeypatch.setattr(at_once.ledgers, "delete", noted_delete)
    await ledger.trim([0])
    assert order == ["list", "delete 0"]
    assert ledger.chain.first == (1, 0)


async def test_a_trim_that_lost_the_race_keeps_its_ledgers(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"1", b"2", b"3")
    await ledger.roll()
    await stored(await at_once.ledger(), b"x")
    with pytest.raises(Fenced):
        await ledger.trim([0])
    assert 0 in at_once.ledgers.ledgers
    assert [s.ledger_id for s in ledger.chain.segments] == [0]


async def test_a_ledger_that_is_anothers_is_trimmed_from_the_list_only() -> None:
    """As in a topic that was served once over another cluster."""
    async with bench(NO_AGE) as made:
        ledger, _ = await filled(made)
        first, second = (segment.ledger_id for segment in ledger.chain.segments[:2])
        made.ledgers.ledgers[first].properties = properties_of("t/n/persistent/theirs")
        with pytest.raises(Corrupted):
            await ledger.read((first, 0), 1, 1)
        await ledger.trim([first, second])
        assert first in made.ledgers.ledgers
        assert second not in made.ledgers.ledgers
        assert len(ledger.chain.segments) == 1
