"""Removes entries from a log: whole ledgers, everything before a message, or by compaction.

The order is the same for each: first the state that is derived from the entries is stored
(`core/ledger/fold/fold.py`), then the list changes in one step (`ledger_list.py`), then ledgers are
deleted. After a crash the log has the old list or the new one, and at worst an unreferenced ledger
takes space. Pulsar deletes in the same order (`ManagedLedgerImpl.internalTrimLedgers`; PIP-186
would delete through a topic, so that none is left over).
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
    """Delete these ledgers, at the front of the list; returns how many the list had."""
    await _cover(ledger, max(doomed, default=-1))
    count, unnamed = await ledger.ledgers.remove(doomed)
    await ledger.delete_ledgers(unnamed)
    await ledger.delayed_index.forget_what_left()
    return count


async def cut(ledger: ManagedLedger, index: int, position: Position) -> None:
    """Have the log begin with that message, durably; it never begins earlier again.

    Kafka's DeleteRecords (KIP-107) and Pulsar's truncation do this.
    """
    await _cover(ledger, position[0])
    unnamed = await ledger.ledgers.begin_at(index, position, lambda: ledger.first_index)
    await ledger.delete_ledgers(unnamed)
    await ledger.delayed_index.forget_what_left()


async def create_beside(ledger: ManagedLedger) -> LedgerWriter:
    """Create a ledger that replaces others later; until then it is noted as to be deleted."""
    writer = await ledger.create()
    try:
        await ledger.ledgers.doom(writer.ledger_id)
    except BrokerError:
        await drop_beside(ledger, writer.ledger_id)
        raise
    return writer


async def drop_beside(ledger: ManagedLedger, ledger_id: int) -> None:
    """Delete a ledger from `create_beside` that replaces none."""
    await ledger.delete_ledgers([ledger_id])
    await ledger.ledgers.spare([ledger_id])


async def replace(
    ledger: ManagedLedger,
    instead: Mapping[int, Segment | None],
    clean_to: int,
    replaced: Callable[[], None],
) -> None:
    """Put what compaction left of each ledger (None: nothing) in its place.

    `replaced` is called as soon as the list is stored. The replaced ledgers are deleted after that;
    if this owner does not get to it, the next one does.
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
