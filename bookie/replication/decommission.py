"""Retires a bookie that is stopped: waits until no ledger needs it any more.

    1  all ledgers of the bookie are marked, whether there is an auditor or not
    2  replication workers, ours or Apache's, replace it; we wait, and read the metadata again
    3  all ledgers are listed once more: a writer may have used the bookie until it was stopped, and
       only when none has it, its cookie may be deleted (by the caller)

`BookKeeperAdmin.decommissionBookie` of BookKeeper 4.18 does the same, but has the auditor mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.replication.audits import Audits
from magnetar.core.kernel.errors import LedgerNotFound, NotAllowed

LOOK_SECONDS: Final = 1.0
"""Between two looks at what is left."""


class Decommission:
    """See the module's docstring."""

    def __init__(self, client: ClusterClient, marks: UnderReplication, audits: Audits) -> None:
        self._client = client
        self._marks = marks
        self._audits = audits

    async def run(self, bookie_id: str, left: Callable[[int], None]) -> int:
        """Wait for that; how many ledgers had the bookie. `left` hears how many still have it."""
        total = 0
        while waiting := await self._marked(bookie_id):
            total += len(waiting)
            while waiting:
                left(len(waiting))
                await trio.sleep(LOOK_SECONDS)
                await self._check(bookie_id)
                waiting = [one for one in waiting if await self._has(one, bookie_id)]
        left(0)
        return total

    async def _marked(self, bookie_id: str) -> list[int]:
        await self._check(bookie_id)
        return await self._audits.mark_bookies([bookie_id])

    async def _check(self, bookie_id: str) -> None:
        bookies = self._client.bookies
        if bookie_id in bookies.writable or bookie_id in bookies.read_only:
            raise NotAllowed(f"the bookie {bookie_id} is running: stop it first")
        if not await self._marks.is_enabled():
            raise NotAllowed("re-replication is disabled: nobody would replace the bookie")

    async def _has(self, ledger_id: int, bookie_id: str) -> bool:
        try:
            ledger = await self._client.ledgers.read(ledger_id)
        except LedgerNotFound:
            return False
        return any(bookie_id in segment.ensembleMember for segment in ledger.segment)
