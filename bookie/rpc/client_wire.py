"""A client's side of one connection: requests out, responses in. Pure.

A connection speaks one version for its whole life. Version 2 is for entries: adds are packed and
answered as rows, and matched by ledger and entry. Version 3 has what version 2 lacks, and matches
by transaction ids. An entry of large size is sent in two pieces, so that it is not copied here.

Invariant: no byte is parsed after `WireError`; what a bookie sends never takes more memory here
than one frame, of `frame_bytes_max` at most, and one receive.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from magnetar.bookie.format.entries import LENGTH_BYTES, Run
from magnetar.bookie.rpc import rows, version2, version3
from magnetar.bookie.rpc.messages import BookieMessage, ReadEntries, Status
from magnetar.bookie.rpc.wire import FRAME_BYTES_MAX
from magnetar.core.kernel.errors import WireError
from magnetar.core.kernel.structs import FrozenLeafStruct
from magnetar.core.native import quickest

ENTRY_BYTES_MAX: Final = FRAME_BYTES_MAX - 500
"""What Apache's bookies store of one entry (`maxSaneEntrySize`, `DefaultEntryLogger.java` of 4.18).
"""
_length = Layout(">I")
_batch_head = Layout(">Iiqqq")

_frames = quickest(rows.frames, "magnetar.bookie.rpc.compiled")
_answered = quickest(rows.answered, "magnetar.bookie.rpc.compiled")


class AddsAnswered(FrozenLeafStruct, frozen=True, gc=False):
    """Responses to consecutive adds, which ended alike."""

    status: Status
    ledger_id: int
    first: int
    count: int


class MatchedResponse(FrozenLeafStruct, frozen=True, gc=False):
    """Any other response; the transaction id is 0 in version 2."""

    txn_id: int
    response: BookieMessage


def pack_adds(run: Run, master_key: bytes, *, recovery: bool = False) -> Sequence[bytes]:
    """The frames that add a run, in pieces to be sent one after the other.

    A recovery's adds are accepted in spite of a fence, and go before others.
    """
    flags = version2.RECOVERY_ADD | version2.HIGH_PRIORITY if recovery else 0
    same = _length.pack(version2.header(version2.ADD, flags)) + master_key
    if not run.apart:
        return (_frames(run.blob, run.offsets, same),)
    entry_head = run.blob[LENGTH_BYTES:]
    size = len(same) + len(entry_head) + len(run.apart)
    return _length.pack(size) + same + entry_head, run.apart


def pack_request(version: int, txn_id: int, request: BookieMessage) -> bytes:
    """The frame of any other request."""
    if version == version2.VERSION:
        body = version2.pack_request(request)
    else:
        body = version3.pack_request(txn_id, request)
    return _length.pack(len(body)) + body


class ClientWire:
    """See the module's docstring."""

    def __init__(self, version: int, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        assert version in (2, 3)
        self._version = version
        self._frame_bytes_max = frame_bytes_max
        self._held: list[bytes] = []
        """What came and is not parsed: less than `_wanted` bytes."""
        self._held_bytes = 0
        self._wanted = _length.size

    def feed(self, data: bytes) -> Sequence[AddsAnswered | MatchedResponse]:
        """All responses that are whole by now."""
        if self._held:
            self._held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes < self._wanted:
                return ()
            data = b"".join(self._held)
            self._held.clear()
        events: list[AddsAnswered | MatchedResponse] = []
        at = self._parse(data, events)
        self._held_bytes = len(data) - at
        if self._held_bytes:
            self._held.append(data[at:])
        return events

    def _parse(self, data: bytes, events: list[AddsAnswered | MatchedResponse]) -> int:
        """Parse whole frames; returns where they end."""
        at, end = 0, len(data)
        while end - at >= _length.size:
            if self._version == version2.VERSION:
                code, ledger_id, first, count, after = _answered(data, at)
                if count:
                    status = version2.STATUSES.get(code, Status.IO_ERROR)
                    events.append(AddsAnswered(status, ledger_id, first, count))
                    at = after
                    continue
            (size,) = _length.unpack_from(data, at)
            if size > self._frame_bytes_max:
                raise WireError(f"a frame of {size} bytes, more than {self._frame_bytes_max}")
            after = at + _length.size + size
            if after > end:
                self._wanted = after - at
                return at
            events.append(self._answer(data[at + _length.size : after]))
            at = after
        self._wanted = _length.size
        return at

    def _answer(self, frame: bytes) -> MatchedResponse:
        if self._version != version2.VERSION:
            return MatchedResponse(*version3.parse_response(frame))
        if len(frame) >= _batch_head.size:
            head, code, ledger_id, first, request_id = _batch_head.unpack_from(frame)
            if version2.opcode_of(head) == version2.BATCH_READ:
                status = version2.STATUSES.get(code, Status.IO_ERROR)
                records = (frame[_batch_head.size :],)
                return MatchedResponse(
                    0, ReadEntries(status, ledger_id, first, request_id, (), records)
                )
        return MatchedResponse(0, version2.parse_response(frame))
