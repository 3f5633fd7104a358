"""Consecutive adds of version 2 as one run, which is what the bookie stores. Pure.

A client pipelines adds of one ledger, so most of what is received at once is a row of frames that
differ in the entry only. They are parsed together, and answered together:

    frame     length (4) | header (4) | master key (20) | entry
    record    length (4) | entry                             as journal and entry log have it
    response  length (4) | header (4) | error code (4) | ledger (8) | entry id (8)

Invariant: a row has one ledger, one key, one header, and consecutive entry ids; its run has the
records of exactly these entries.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from magnetar.bookie.format.entries import Run
from magnetar.bookie.rpc import rows, version2
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.structs import FrozenLeafStruct
from magnetar.core.native import quickest

RUN_BYTES_MAX: Final = 4 * 1024 * 1024
"""A longer row is cut, so that groups of the journal stay bounded."""

_begin = Layout(">II").unpack_from
_ids = Layout(">qq").unpack_from

_gather = quickest(rows.gather, "magnetar.bookie.rpc.compiled")
_responses = quickest(rows.responses, "magnetar.bookie.rpc.compiled")


class Adds(FrozenLeafStruct, frozen=True, gc=False):
    """A row of adds: the header of each, the key of each, and their entries."""

    header: int
    master_key: bytes
    run: Run

    @property
    def recovery(self) -> bool:
        return self.header & version2.RECOVERY_ADD != 0

    @property
    def high_priority(self) -> bool:
        return self.header & version2.HIGH_PRIORITY != 0


def adds_at(data: bytes, start: int) -> tuple[Adds, int] | None:
    """The row of adds that begins at `start`, and its end; None if no whole add does."""
    if len(data) - start < rows.FRAME_BYTES_MIN:
        return None
    _, header = _begin(data, start)
    if (
        version2.opcode_of(header) != version2.ADD
        or not version2.VERSION_MIN <= header >> 24 <= version2.VERSION
    ):
        return None
    blob, offsets, end = _gather(data, start, RUN_BYTES_MAX)
    if end == start:
        return None
    ledger_id, first = _ids(data, start + rows.BEFORE_ENTRY)
    key = data[start + rows.BEFORE_ENTRY - rows.KEY_BYTES : start + rows.BEFORE_ENTRY]
    return Adds(header, key, Run(ledger_id, first, blob, offsets)), end


def pack_responses(adds: Adds, status: Status) -> bytes:
    """The responses to a row, which ended alike, as whole frames."""
    head, code, run = adds.header & 0xFFFF0000, version2.CODES[status], adds.run
    return _responses(head, code, run.ledger_id, run.first, run.count)
