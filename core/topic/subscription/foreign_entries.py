"""Converts entries of a mixed topic into the native form, in which subscriptions deliver.

A topic is mixed once an entry in another form was written to it (`core/entry`). Entries are
converted just before delivery, a few at a time, and large ones in a thread. KoP converts each entry
when it is fetched, too (`KafkaV1EntryFormatter.java`, `decode`). An entry without messages for
consumers, or one that cannot be read (which is logged), is hidden: it counts as acknowledged.

Invariant: a converted entry keeps its position; a hidden one is never delivered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import trio

from magnetar.core.entry import conversion
from magnetar.core.entry.form import Form, MarkKind
from magnetar.core.entry.forms import NATIVE, form_of
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.ledger.read.transaction_index import TransactionIndex

log = logging.getLogger(__name__)

CROSSED_BYTES_MAX: Final = 1024 * 1024
"""Converted for one delivery; the rest is converted after it."""
MESSAGES_PER_REST: Final = 300
"""Converted in about a millisecond, after which other tasks run."""
MESSAGES_ON_THE_LOOP: Final = 2_000
"""An entry with more is converted in a thread."""

Hide = Callable[[int, int, int], object]
"""Takes a ledger id, and the first and last of its entries to acknowledge."""


async def converted(part: Slice, hide: Hide, ledger: ManagedLedger) -> Slice:
    """The first entries of a slice, converted: as many as one delivery takes, at least one."""
    payloads: list[bytes] = []
    headers: list[bytes] = []
    counts: list[int] = []
    size = messages = 0
    transactions = ledger.transactions
    for place, stored in enumerate(part.payloads):
        header, tail = part.header(place), part.sent(place)
        headers.append(stored[: header.size] if part.headers is None else part.headers[place])
        form = form_of(tail)
        count = 1 if part.counts is None else part.counts[place]
        if transactions.present and is_hidden(transactions, part, place):
            tail, count = b"", 0
        elif form is not NATIVE:
            tail, count = await _crossed(ledger, form, tail, header.first_index, count)
        if not tail or form is not NATIVE:
            if not tail:
                hide(part.ledger_id, part.first_entry + place, part.first_entry + place)
            messages += count
        payloads.append(tail)
        counts.append(count)
        size += len(tail)
        if size >= CROSSED_BYTES_MAX:
            break
        if messages >= MESSAGES_PER_REST:
            messages = 0
            await trio.lowlevel.checkpoint()
    return Slice(part.ledger_id, part.first_entry, payloads, counts, headers)


async def _crossed(
    ledger: ManagedLedger, form: Form, sent: bytes, index: int, count: int
) -> tuple[bytes, int]:
    try:
        if count <= MESSAGES_ON_THE_LOOP:
            return conversion.converted(sent, NATIVE, index)
        return await trio.to_thread.run_sync(conversion.converted, sent, NATIVE, index)
    except Corrupted as error:
        log.error("%s: nobody can read the batch at index %d: %s", ledger.name, index, error)
        return b"", 0


def is_hidden(transactions: TransactionIndex, part: Slice, place: int) -> bool:
    """Whether an entry ends a transaction, or belongs to one that was aborted."""
    sent = part.sent(place)
    try:
        found = form_of(sent).transaction_mark(sent)
    except Corrupted:
        return False
    if found is None:
        return False
    if found.kind is not MarkKind.PART:
        return True
    return transactions.hides(found.key, part.header(place).first_index)
