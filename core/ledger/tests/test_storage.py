"""What logs share: who has appends gathered, and who has them written at once."""

import msgspec

from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.testing.bench import NAME, Outcome, bench, settled


async def test_appends_are_written_at_once_or_when_the_gatherer_says() -> None:
    async with bench() as desk:
        at_once = await desk.ledger()
        outcome = Outcome()
        at_once.append([b"x"], None, outcome)
        await settled()
        assert outcome.result == (0, 0)

        gathered: list[ManagedLedger] = []
        storage = msgspec.structs.replace(desk.storage, gather=gathered.append)
        later = ManagedLedger(storage, NAME + "2", lambda: None)
        await later.open()
        opening, first, second = Outcome(), Outcome(), Outcome()
        later.append([b"w"], None, opening)  # opens a ledger, and goes into it at once
        await settled()
        later.append([b"x"], None, first)
        later.append([b"y"], None, second)
        await settled()
        assert (gathered, first.times, second.times) == ([later], 0, 0)
        later.write()
        await settled()
        assert [each.result for each in (opening, first, second)] == [(1, 0), (1, 1), (1, 2)]
