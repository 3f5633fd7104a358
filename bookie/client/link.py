"""What the client needs of one bookie: in this process, or at the other end of a connection."""

from typing import Protocol

from magnetar.bookie.format.entries import DigestHeader, Run
from magnetar.core.ports.ledger_store import Done


class BookieLink(Protocol):
    """One bookie as the client sees it."""

    async def create(self, ledger_id: int, master_key: bytes) -> None:
        """A new ledger; `AlreadyExists` if the bookie has ever had it, or a later one."""
        ...

    def add(self, run: Run, master_key: bytes, acked: Done) -> None:
        """Store a run; `acked` is called once, on the loop, unless this raises. Plain call."""
        ...

    async def read(self, ledger_id: int, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Checked payloads from `first` on, at least one; `EntryNotFound` if that is not there."""
        ...

    def read_at_once(self, ledger_id: int, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Likewise, if they are at hand; or nothing. Plain call."""
        ...

    async def fence(self, ledger_id: int, master_key: bytes) -> None:
        """Let nobody add any more; durable when this returns."""
        ...

    async def damage(self, ledger_id: int, entry_id: int, last: int) -> tuple[int, int]:
        """How far the damage reaches of which this entry is part; the ledger ends at `last`."""
        ...

    async def last_entry(self, ledger_id: int) -> DigestHeader | None:
        """Ids and length in the last entry that is there."""
        ...

    def release(self, ledger_id: int) -> None:
        """The ledger has no writer here any more."""
        ...
