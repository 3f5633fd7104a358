"""What the first pass has found: numbers of entries, and where the second has to read."""

from __future__ import annotations

import time

from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.look import Look, Numbers
from magnetar.core.compaction.tests.histories import appended
from magnetar.core.compaction.tests.histories import entries as log_entries
from magnetar.core.compaction.value_rule import PLACE_BITS
from magnetar.core.ledger.log.chain import START
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.testing.bench import NO_AGE, bench
from magnetar.core.testing.entries import entry


async def _filled(ledger: ManagedLedger, count: int) -> None:
    await appended(ledger, *[entry(b"x", key=b"%d" % number) for number in range(count)])


async def test_numbers_ascend_with_positions() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        await _filled(ledger, 10)
        places = [at for at, _ in await log_entries(ledger)]
        numbers = Numbers(ledger, START)
        assert [numbers.of(at) for at in places] == list(range(10))
        assert numbers.total == 10
        later = Numbers(ledger, places[4])
        assert [later.of(at) for at in places[4:]] == list(range(1, 7))


async def look_over(entries: int) -> Look:
    """The look of a round over so many entries, of which none is noted yet."""
    async with bench(NO_AGE) as made:
        numbers = Numbers(await made.ledger(), START)
        numbers.total = entries
        return Look(Latest(1000), numbers, retains_keyless=False)


async def test_the_next_wanted_entry() -> None:
    look = await look_over(1000)
    for number in (3, 4, 500):
        look.want(number)
    look.latest.note(b"a", 70 << PLACE_BITS)
    look.orders = look.latest.orders()
    asked = [0, 3, 4, 5, 70, 71, 499, 500, 501, 999, 5000, 4, 0]
    assert [look.next_wanted(number) for number in asked] == [
        *(3, 3, 4, 70, 70, 500, 500, 500, -1, -1, -1, 4, 3)
    ]


async def test_the_bits_are_looked_at_once() -> None:
    """A topic of single messages asks once for each of them."""
    look = await look_over(80_000_000)
    look.want(79_999_999)
    begun = time.process_time()
    for number in range(5_000):
        assert look.next_wanted(number) == 79_999_999
    assert time.process_time() - begun < 2.0, "it was 10 MB for each"
