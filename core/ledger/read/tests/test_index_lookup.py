"""Every message is found by its index, whatever ledger and batch it stands in."""

import pytest

from magnetar.core.entry import header
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.index_lookup import REMEMBERED_MAX, IndexLookup
from magnetar.core.testing.bench import NO_AGE, Bench, Outcome, bench, settled

COUNTS = [1, 3, 1, 1, 10, 2, 1, 1, 4]
FIRSTS = [sum(COUNTS[:place]) for place in range(len(COUNTS))]


async def filled(made: Bench) -> ManagedLedger:
    """Ledgers of three entries each."""
    ledger = await made.ledger()
    for place, count in enumerate(COUNTS):
        ledger.append([b"%d" % place], [count], Outcome())
        await settled()
    return ledger


async def entry_at(ledger: ManagedLedger, position: tuple[int, int]) -> int:
    entry = (await ledger.read(position, 1, 1)).payloads[0]
    return int(entry[header.read(entry).size :])


@pytest.mark.parametrize("tailed", [True, False])
async def test_every_message_is_found(tailed: bool) -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        ledger.cache_tail(tailed)
        for place, count in enumerate(COUNTS):
            ledger.append([b"%d" % place], [count], Outcome())
            await settled()
        assert len(ledger.chain.segments) > 2
        places = IndexLookup(ledger)
        assert ledger.first_index == 0
        assert ledger.confirmed_index == sum(COUNTS)
        for place, (first, count) in enumerate(zip(FIRSTS, COUNTS, strict=True)):
            for index in range(first, first + count):
                assert await entry_at(ledger, await places.find(index)) == place
        assert await places.find(sum(COUNTS)) == ledger.chain.after(ledger.chain.confirmed)


async def test_a_place_that_is_known_is_not_looked_for() -> None:
    async with bench(NO_AGE) as made:
        ledger = await filled(made)
        places = IndexLookup(ledger)
        position = await places.find(FIRSTS[4])
        places.note(0, position)  # not where it is: only to see that nobody looks
        assert await places.find(0) == position
        for index in range(100, 100 + REMEMBERED_MAX):
            places.note(index, position)
        assert await places.find(0) != position


async def test_a_place_in_a_ledger_that_is_gone_is_looked_for_again() -> None:
    async with bench(NO_AGE) as made:
        ledger = await filled(made)
        places = IndexLookup(ledger)
        first = ledger.chain.segments[0].ledger_id
        places.note(0, (first, 0))
        await ledger.trim([first])
        assert ledger.first_index == FIRSTS[3]
        assert await entry_at(ledger, await places.find(0)) == 3


async def test_what_is_told_and_what_may_be_read() -> None:
    async with bench(sync_at_once=False) as made:
        ledger = await made.ledger()
        outcome: list[int] = []

        def done(result: object) -> None:
            assert isinstance(result, tuple)
            outcome.append(ledger.delivered_index(result))

        for counts in ([2, 3], [1], [4]):
            ledger.append([b"x"] * len(counts), counts, done)
        await settled()
        assert (outcome, ledger.confirmed_index) == ([], 0)
        made.ledgers.sync()
        await settled()
        assert outcome == [0, 5, 6]
        assert ledger.confirmed_index == 10
