"""Finds entries by publish time, in a binary search over the log.

Publish times come from clients' clocks and need not be in order. If they are not, the result is one
of the positions where an earlier message precedes a later one, as in Pulsar
(`PersistentMessageFinder.java` of 4.2).
"""

from typing import Final

from magnetar.core.entry.forms import form_of
from magnetar.core.ledger.log.chain import START, Chain, Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger

LATEST_LEDGER: Final = 2**63 - 1
"""The ledger id of `MessageId.latest` in Pulsar's clients."""


def mark_before(chain: Chain, position: Position, horizon: Position = START) -> Position:
    """The mark-delete position after which `position` is the next entry; -1 means the start.

    Positions up to `horizon` are those of a compacted ledger, and the log may not have them.
    """
    if position[0] >= LATEST_LEDGER:
        return chain.confirmed
    if position[0] < 0 or position[1] < 0:
        return START
    ledger_id, entry_id = position if position <= horizon else chain.normal(position)
    return (ledger_id, entry_id - 1)


async def find_by_time(ledger: ManagedLedger, since_ms: int) -> Position:
    """The first entry published at `since_ms` or later; one past the last if all are older."""
    chain = ledger.chain
    for segment in list(chain.segments):
        last = chain.last_entry_of(segment)
        if last < 0 or await _published(ledger, (segment.ledger_id, last)) < since_ms:
            continue
        ids = segment.ids
        low, high = 0, len(ids) - 1
        while low < high:
            middle = (low + high) // 2
            if await _published(ledger, (segment.ledger_id, ids[middle])) < since_ms:
                low = middle + 1
            else:
                high = middle
        return chain.normal((segment.ledger_id, ids[low]))
    return chain.after(chain.confirmed)


async def _published(ledger: ManagedLedger, position: Position) -> int:
    """The publish time of an entry; of a lost one, that of the next readable entry."""
    found = ledger.cached(position)
    if found is not None:
        sent = found[0].sent(found[1])
    else:
        near = await ledger.losses.readable_near(position)
        if near is None:
            return 0
        sent = near.sent(0)
    return form_of(sent).publish_time(sent)
