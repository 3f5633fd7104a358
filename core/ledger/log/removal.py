"""What leaves a log: whole ledgers, all that is before a message, or what compaction takes.

State that is derived from the entries (`fold.py`) is stored before they go. Then the list changes,
in one step (`ledger_list.py`), and nothing is deleted before that is stored: after a crash the log
holds the old list or the new one, and at worst an unreferenced ledger takes space.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.ports.ledger_store import LedgerWriter

if TYPE_CHECKING:
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger


async def trim(ledger: ManagedLedger, doomed: list[int]) -> int:
    """These ledgers, at the front of the list, are deleted; returns how many were there."""
    await _cover(ledger, max(doomed, default=-1))
    count, unnamed = await ledger.ledgers.remove(doomed)
    await ledger.delete_ledgers(unnamed)
    return count


async def cut(ledger: ManagedLedger, index: int, position: Position) -> None:
    """The log begins with that message from now on, durably; it never begins earlier again."""
    await _cover(ledger, position[0])
    unnamed = await ledger.ledgers.begin_at(index, position, lambda: ledger.first_index)
    await ledger.delete_ledgers(unnamed)


async def create_beside(ledger: ManagedLedger) -> LedgerWriter:
    """A ledger that is no part of the log yet: it is doomed, until it takes others' place."""
    writer = await ledger.create()
    try:
        await ledger.ledgers.doom(writer.ledger_id)
    except BrokerError:
        await drop_beside(ledger, writer.ledger_id)
        raise
    return writer


async def drop_beside(ledger: ManagedLedger, ledger_id: int) -> None:
    """It is not to be part of the log."""
    await ledger.delete_ledgers([ledger_id])
    await ledger.ledgers.spare([ledger_id])


async def replace(
    ledger: ManagedLedger,
    instead: Mapping[int, Segment | None],
    clean_to: int,
    replaced: Callable[[], None],
) -> None:
    """Of each of these ledgers, only that is left; `replaced` is called as soon as that is so.

    What held the entries before is deleted; if not by this owner, by the next one.
    """
    await _cover(ledger, max(instead, default=-1))
    unnamed = await ledger.ledgers.replace(instead, clean_to, lambda: ledger.first_index, replaced)
    await ledger.delete_ledgers(unnamed)


async def _cover(ledger: ManagedLedger, ledger_id: int) -> None:
    """Store the state that is derived from entries of ledgers up to that one."""
    segments = [one for one in ledger.chain.segments if one.ledger_id <= ledger_id]
    if segments:
        last = (segments[-1].ledger_id, ledger.chain.last_entry_of(segments[-1]))
        for follower in ledger.followers:
            await follower.cover(last)
