"""The ledgers of a bookie that has its own client, lent to readers over the network.

Nothing of theirs may disturb that client: no add, no fence, no explicit LAC. It is trusted and
tells nobody its LAC, so that of a ledger is what its last entry says: with one bookie that was
stored.
"""

from __future__ import annotations

from contextlib import suppress

from magnetar.bookie.format import entries
from magnetar.bookie.format.entries import Run
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.core.kernel.errors import EntryNotFound, Unauthorized
from magnetar.core.ports.ledger_store import Done


class LentLedgers(ServedLedgers):
    """See the module's docstring."""

    @property
    def writable(self) -> bool:
        return False

    def add(
        self,
        run: Run,
        master_key: bytes,
        acked: Done,
        *,
        recovery: bool = False,
        urgent: bool = False,
    ) -> None:
        raise _refusal(run.ledger_id)

    def fence(self, ledger_id: int, master_key: bytes, done: Done) -> None:
        raise _refusal(ledger_id)

    def write_lac(self, ledger_id: int, master_key: bytes, packet: bytes, done: Done) -> None:
        raise _refusal(ledger_id)

    def force(self, done: Done) -> None:
        raise Unauthorized("this server's ledgers may be read only")

    async def lac(self, ledger_id: int) -> int:
        """Looked up each time: only then do those who wait for it hear that it has moved."""
        state, found = self.known(ledger_id), -1
        with suppress(EntryNotFound):
            found = entries.last_confirmed_of(await self.last_entry(ledger_id))
        state.lac = max(state.lac, -1)  # from now on it is known
        if found > state.lac:
            self._advance(ledger_id, state, found)
        return found


def _refusal(ledger_id: int) -> Unauthorized:
    return Unauthorized(f"ledger {ledger_id} belongs to this server: it may be read only")
