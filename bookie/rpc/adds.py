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

from array import array
from struct import Struct as Layout
from typing import Final

import msgspec

from magnetar.bookie.format.entries import ENTRY_BYTES_MIN, Run
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import Status

LENGTH_BYTES: Final = 4
BEFORE_ENTRY: Final = LENGTH_BYTES + version2.ENTRY_AT
"""Bytes of a frame before its entry, with the length."""
FRAME_BYTES_MIN: Final = BEFORE_ENTRY + ENTRY_BYTES_MIN
RUN_BYTES_MAX: Final = 4 * 1024 * 1024
"""A longer row is cut, so that groups of the journal stay bounded."""

_begin = Layout(">II").unpack_from
_ids = Layout(">qq").unpack_from
_length = Layout(">I").pack
_response = Layout(">IIiqq").pack
_RESPONSE_BYTES: Final = 24


class Adds(msgspec.Struct, frozen=True, gc=False):
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
    end = len(data)
    if end - start < FRAME_BYTES_MIN:
        return None
    size, header = _begin(data, start)
    if (
        version2.opcode_of(header) != version2.ADD
        or not version2.VERSION_MIN <= header >> 24 <= version2.VERSION
    ):
        return None
    same = data[start + LENGTH_BYTES : start + BEFORE_ENTRY]
    ledger_id, first = _ids(data, start + BEFORE_ENTRY)
    parts: list[bytes] = []
    offsets = [0]
    at, expected = start, first
    while size >= FRAME_BYTES_MIN - LENGTH_BYTES and at + LENGTH_BYTES + size <= end:
        if data[at + LENGTH_BYTES : at + BEFORE_ENTRY] != same:
            break
        if _ids(data, at + BEFORE_ENTRY) != (ledger_id, expected):
            break
        entry = data[at + BEFORE_ENTRY : at + LENGTH_BYTES + size]
        if parts and offsets[-1] + len(entry) > RUN_BYTES_MAX:
            break
        parts += (_length(len(entry)), entry)
        offsets.append(offsets[-1] + LENGTH_BYTES + len(entry))
        at += LENGTH_BYTES + size
        expected += 1
        if end - at < FRAME_BYTES_MIN:
            break
        (size, _) = _begin(data, at)
    if not parts:
        return None
    run = Run(ledger_id, first, b"".join(parts), array("I", offsets))
    return Adds(header, same[LENGTH_BYTES:], run), at


def pack_responses(adds: Adds, status: Status) -> bytes:
    """The responses to a row, which ended alike, as whole frames."""
    head, code = adds.header & 0xFFFF0000, version2.CODES[status]
    ledger_id, first, last = adds.run.ledger_id, adds.run.first, adds.run.last
    return b"".join(
        [
            _response(_RESPONSE_BYTES, head, code, ledger_id, entry_id)
            for entry_id in range(first, last + 1)
        ]
    )
