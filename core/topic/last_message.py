"""Finds the last entry of a topic that consumers are delivered, past aborted transactions.

Pulsar's clients ask for it (GET_LAST_MESSAGE_ID) each time that a reader wants to know whether
there is more. Entries of aborted transactions, and markers, are delivered to nobody, so the log is
read backwards past them. There may be a million, so what was read once is not read again: what is
hidden stays hidden, because the search ends where the oldest open transaction begins.

Invariant: `_found` is the last entry up to `_searched` that is delivered.
"""

from __future__ import annotations

from typing import Final

import trio

from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.topic.subscription.foreign_entries import is_hidden

LOOKED_AT_ONCE: Final = 64
LOOKED_AT_BYTES: Final = 4 * 1024 * 1024
"""Entries, and bytes, that are read at once in search of the last one that is not hidden."""


class LastMessage:
    """See the module's docstring."""

    __slots__ = ("_found", "_ledger", "_searched", "_turn")

    def __init__(self, ledger: ManagedLedger) -> None:
        self._ledger = ledger
        self._found = self._searched = START
        self._turn: trio.Lock | None = None
        """Held while the log is read: who comes meanwhile reads only what has come meanwhile. Made
        when it is needed, because most topics have no transactions."""

    async def find(self) -> Position:
        """The position of that entry; START or lower than the first of the log if there is none."""
        ledger = self._ledger
        if not ledger.transactions.present:
            return ledger.chain.confirmed
        self._turn = self._turn or trio.Lock()
        async with self._turn:
            end = ledger.transactions.stable_position(ledger.chain.confirmed)
            if end > self._searched:
                found = await self._search(end)
                self._found, self._searched = found or self._found, end
            return self._found

    async def _search(self, end: Position) -> Position | None:
        """The last one of those up to `end` that were not searched before."""
        chain = self._ledger.chain
        for segment in reversed(list(chain.segments)):
            ledger_id, first = segment.ledger_id, segment.first_entry
            if ledger_id > end[0]:
                continue
            if ledger_id < self._searched[0]:
                break
            last = chain.last_entry_of(segment)
            if ledger_id == end[0]:
                last = min(last, end[1])
            if ledger_id == self._searched[0]:
                first = max(first, self._searched[1] + 1)
            while last >= first:
                begin = max(last + 1 - LOOKED_AT_ONCE, first)
                found = await self._last_shown(ledger_id, begin, last)
                if found is not None:
                    return found
                last = begin - 1
        return None

    async def _last_shown(self, ledger_id: int, first: int, last: int) -> Position | None:
        """The last entry of a stretch that is not hidden from consumers."""
        ledger, found = self._ledger, None
        while first <= last:
            part = await ledger.losses.read_round(
                (ledger_id, first), last + 1 - first, LOOKED_AT_BYTES
            )
            for place in range(len(part.payloads)):
                position = part.ledger_id, part.first_entry + place
                within = position <= (ledger_id, last)
                if within and not is_hidden(ledger.transactions, part, place):
                    found = position
            if part.ledger_id != ledger_id:
                break
            first = part.first_entry + len(part.payloads)
        return found
