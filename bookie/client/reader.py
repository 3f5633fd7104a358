"""Reads one ledger up to where it is confirmed."""

from __future__ import annotations

from collections.abc import Callable

from magnetar.bookie.client.link import BookieLink
from magnetar.core.kernel.errors import Corrupted, EntryNotFound


class Reader:
    """A LedgerReader. `last_confirmed` returns the last entry known to be confirmed (the LAC).

    Invariant: nothing beyond `last_confirmed` is read (as in `LedgerHandle.readEntries` of 4.18). A
    missing entry before it is lost: the error is `Corrupted`, not `EntryNotFound`.
    """

    def __init__(self, ledger_id: int, link: BookieLink, last_confirmed: Callable[[], int]) -> None:
        self._ledger_id = ledger_id
        self._link = link
        self._last_confirmed = last_confirmed

    @property
    def ledger_id(self) -> int:
        return self._ledger_id

    @property
    def last_confirmed(self) -> int:
        return self._last_confirmed()

    async def read(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        confirmed = self._last_confirmed()
        if first > confirmed or first < 0:
            raise EntryNotFound(f"ledger {self._ledger_id} has no entry {first} yet")
        try:
            return await self._link.read(self._ledger_id, first, min(last, confirmed), bytes_max)
        except EntryNotFound as error:
            raise Corrupted(f"entry {self._ledger_id}:{first} was confirmed and is lost") from error

    async def damage(self, entry_id: int) -> tuple[int, int]:
        return await self._link.damage(self._ledger_id, entry_id, self._last_confirmed())

    def read_at_once(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        last = min(last, self._last_confirmed())
        if not 0 <= first <= last:
            return []
        return self._link.read_at_once(self._ledger_id, first, last, bytes_max)
