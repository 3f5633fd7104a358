"""What leaves a log: whole ledgers, all that is before a message, or what compaction takes.

State that is derived from the entries (`fold.py`) is stored before they go. Then the list is
written, in one step, and nothing is deleted before that is done: after a crash the log is as it
was, or as it is to be, and at worst a ledger that nobody names takes room.

Invariant: a change of the list that could not be stored has not happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.errors import BrokerError
from magnetar.core.ledger.chain import NOWHERE, Chain, Position, Segment
from magnetar.core.ports.ledger_store import LedgerWriter

if TYPE_CHECKING:
    from magnetar.core.ledger.managed import ManagedLedger

CLEAN_TO: Final = "magnetar.clean-to"
"""Property of the log: messages with a lower index have been compacted."""


async def trim(ledger: ManagedLedger, doomed: list[int]) -> int:
    """These ledgers, at the front of the list, are deleted; returns how many were there."""
    chain = ledger.chain
    await _cover(ledger, max(doomed, default=-1))
    async with ledger.cutting:
        gone = [one for one in chain.segments if one.ledger_id in doomed and one.closed_ms]
        if not gone:
            return 0
        begins_at = chain.begins_at
        chain.segments = [one for one in chain.segments if one not in gone]
        left = next((one.first_index for one in chain.segments), ledger.next_index)
        if chain.begins_at <= left:
            chain.begins_at = NOWHERE
        await _saved(ledger, gone, begins_at, chain.start)
    await ledger.delete_ledgers(_unnamed(ledger, gone))
    return len(gone)


async def cut(ledger: ManagedLedger, index: int, position: Position) -> None:
    """The log begins with that message from now on, durably; it never begins earlier again."""
    chain = ledger.chain
    await _cover(ledger, position[0])
    async with ledger.cutting:
        if index <= ledger.first_index:
            return
        begins_at, start = chain.begins_at, chain.start
        gone = [one for one in chain.segments if one.closed_ms and _end_of(one) < position]
        chain.segments = [one for one in chain.segments if one not in gone]
        chain.begins_at, chain.start = index, max(chain.start, position)
        await _saved(ledger, gone, begins_at, start)
    await ledger.delete_ledgers(_unnamed(ledger, gone))


async def create_beside(ledger: ManagedLedger) -> LedgerWriter:
    """A ledger that is no part of the log yet: it is doomed, until it takes others' place."""
    writer = await ledger.create()
    ledger.doomed.add(writer.ledger_id)
    try:
        await ledger.save()
    except BrokerError:
        await drop_beside(ledger, writer.ledger_id)
        raise
    return writer


async def drop_beside(ledger: ManagedLedger, ledger_id: int) -> None:
    """It is not to be part of the log."""
    await ledger.delete_ledgers([ledger_id])
    ledger.doomed.discard(ledger_id)


async def replace(
    ledger: ManagedLedger,
    instead: Mapping[int, Segment | None],
    clean_to: int,
    told: Callable[[], None],
) -> None:
    """Of each of these ledgers, only that is left; `told` is called as soon as that is so.

    The log begins where it did. Ledgers that are not listed any more have gone meanwhile, and what
    was left of them goes too. What held the entries before is deleted, by whoever opens the log
    next if not by this one.
    """
    chain = ledger.chain
    await _cover(ledger, max(instead, default=-1))
    async with ledger.cutting:
        before, begins_at, clean = chain.segments, chain.begins_at, ledger.properties.get(CLEAN_TO)
        doomed = set(ledger.doomed)
        if begins_at == NOWHERE:
            chain.begins_at = ledger.first_index
        listed = [(instead.get(one.ledger_id, one), one) for one in before]
        chain.segments = [new for new, _ in listed if new is not None]
        chain.rewritten += 1
        ledger.properties[CLEAN_TO] = str(clean_to)
        ledger.doomed |= _unnamed(ledger, [one for new, one in listed if new is not one])
        ledger.doomed -= {one.stored_in for one in chain.segments}
        try:
            await ledger.save()
        except BrokerError:
            chain.segments = before + chain.segments[len(chain.segments) - _newer(chain, before) :]
            chain.begins_at, chain.rewritten = begins_at, chain.rewritten + 1
            ledger.doomed = doomed
            ledger.properties[CLEAN_TO] = clean or "0"
            raise
        told()
    gone, ledger.doomed = ledger.doomed, set()
    await ledger.delete_ledgers(gone)


async def _cover(ledger: ManagedLedger, ledger_id: int) -> None:
    """Store the state that is derived from entries of ledgers up to that one."""
    segments = [one for one in ledger.chain.segments if one.ledger_id <= ledger_id]
    if segments:
        last = (segments[-1].ledger_id, ledger.chain.last_entry_of(segments[-1]))
        for fold in list(ledger.folds):
            await fold.cover(last)


def _newer(chain: Chain, before: list[Segment]) -> int:
    """How many ledgers have been begun since then."""
    last = before[-1].ledger_id if before else -1
    return sum(one.ledger_id > last for one in chain.segments)


def _unnamed(ledger: ManagedLedger, gone: Iterable[Segment]) -> set[int]:
    """The ledgers that held these, and hold nothing that is still in the list."""
    return {one.stored_in for one in gone} - {one.stored_in for one in ledger.chain.segments}


def _end_of(segment: Segment) -> Position:
    return (segment.ledger_id, segment.entries - 1)


async def _saved(
    ledger: ManagedLedger, gone: list[Segment], begins_at: int, start: Position
) -> None:
    """Write the list without what is gone, or have all be as it was before."""
    try:
        await ledger.save()
    except BrokerError:
        chain = ledger.chain
        chain.segments = gone + chain.segments
        chain.begins_at, chain.start = begins_at, start
        raise
