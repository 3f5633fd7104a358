"""The port through which the ledger client uses one bookie, in this process or a remote one."""

from typing import Protocol

from magnetar.bookie.format.entries import DigestHeader, Run
from magnetar.core.ports.ledger_store import Done


class BookieLink(Protocol):
    """One bookie as the client sees it."""

    async def create(self, ledger_id: int, master_key: bytes) -> None:
        """Create a ledger; `AlreadyExists` if the bookie has ever had that id, or a higher one.

        Apache's protocol has no such request: its bookies create a ledger with its first entry.
        """
        ...

    def add(self, run: Run, master_key: bytes, acked: Done) -> None:
        """Store a run; `acked` is called once, on the loop, unless this raises. Plain call."""
        ...

    async def read(self, ledger_id: int, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Checked payloads from `first` on, at least one; `EntryNotFound` if `first` is missing."""
        ...

    def read_at_once(self, ledger_id: int, first: int, last: int, bytes_max: int) -> list[bytes]:
        """As `read`, if the payloads are in memory; else an empty list. Plain call."""
        ...

    async def fence(self, ledger_id: int, master_key: bytes) -> None:
        """Refuse all further entries; durable when this returns."""
        ...

    async def damage(self, ledger_id: int, entry_id: int, last: int) -> tuple[int, int]:
        """The first and last of the damaged entries around this one; the ledger ends at `last`."""
        ...

    async def last_entry(self, ledger_id: int) -> DigestHeader | None:
        """The header of the last stored entry; None if there is no entry."""
        ...

    def release(self, ledger_id: int) -> None:
        """Forget the state of a ledger without a writer."""
        ...
