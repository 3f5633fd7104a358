"""Rows of logs that are one open ledger, as numbers, written while the log grows. Pure.

A row (`planning.py`) of such a log changes with each append, in three numbers. What it is made of
is at hand then, and not when a query asks for ten thousand rows: to look for it costs a
microsecond or three each. So whoever keeps rows has room for the numbers of each, which the log
keeps up to date (`ChangeNotice`), and makes text of them at once.

Invariant: numbers are written only where they say all that a row does: the log is one open ledger
from its beginning on, nothing of which is trimmed, sealed or compacted, and no transaction in it is
open or was aborted.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from magnetar.core.ledger.log.chain import NOWHERE, START, Chain
from magnetar.core.ledger.log.change_notice import COUNTED, ChangeNotice
from magnetar.core.ledger.read.transaction_index import TransactionIndex
from magnetar.core.native import quickest

LAYOUT: Final = Struct("=6q")
"""Ledger, index of its first message, entries, index behind the last, bytes, when it was begun."""
ROW_SIZE: Final = LAYOUT.size
ROW: Final = b'[[%d,0,%d],[%d,%d,%d],[%d,%d,%d],[[%d,%d,%d,%d,true,%d,0,""]],[]]'
LEDGER: Final = Struct("=q")

_pack: Final = LAYOUT.pack_into


def note_end(
    notice: ChangeNotice, chain: Chain, transactions: TransactionIndex, end_index: int
) -> None:
    """Write the row of a log whose end has moved; one that numbers do not say stays marked.
    Plain call, with each run that is stored.
    """
    segments = chain.segments
    if len(segments) != 1 or chain.begins_at != NOWHERE or chain.start != START:
        return
    one = segments[0]
    entries = one.entries
    if (
        one.closed_ms
        or one.remaining is not None
        or not entries
        or chain.confirmed[0] != one.ledger_id
        or transactions.open
        or transactions.aborted
    ):
        return
    number, marks = notice.number, notice.marks
    if marks is not None and number < len(marks):  # else the rows are not kept any more
        first, begun = one.first_index, one.begun_ms
        at = number * ROW_SIZE
        _pack(notice.numbers, at, one.ledger_id, first, entries, end_index, one.size, begun)
        marks[number] = COUNTED


def py_rows_text(rows: Sequence[bytes], marks: bytearray, numbers: bytearray) -> bytes:
    """All rows with commas between: those that are counted by their numbers, others as they are."""
    made = list(rows)
    for number in range(len(made)):  # mypyc does not enumerate a bytearray
        if marks[number] == COUNTED:
            ledger, first, entries, end, size, begun = LAYOUT.unpack_from(
                numbers, number * ROW_SIZE
            )
            place = (ledger, entries, end)
            kept = (ledger, first, entries, size, begun)
            made[number] = ROW % (ledger, first, *place, *place, *kept)
    return b",".join(made)


def ledger_of(numbers: bytearray, number: int) -> int:
    """The ledger of a row that is counted."""
    found: int = LEDGER.unpack_from(numbers, number * ROW_SIZE)[0]
    return found


rows_text: Final = quickest(py_rows_text, "magnetar.core.ledger.log.compiled")
