"""The single writer of an open ledger.

Runs are sealed at once, with the last entry confirmed by then; sent to the bookies of the ensemble;
and reported in the order of their appends. One bookie answers in that order, so a queue of runs in
flight is the only state. With several bookies, each run in it will count its missing answers, as
`PendingAddOp.java` does.

Invariants: `last_confirmed` never goes back; after an error other than `Overloaded` every later run
fails with the same error; a refused run uses up no entry id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from magnetar.bookie.client import metadata_loop
from magnetar.bookie.client.link import BookieLink
from magnetar.bookie.client.reader import Reader
from magnetar.bookie.client.refused_runs import RefusedRuns
from magnetar.bookie.format import entries, ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import BrokerError, Fenced, Invalid, Overloaded
from magnetar.core.kernel.pieces import size_of
from magnetar.core.ports.ledger_store import Done, LedgerInfo
from magnetar.core.ports.metadata_store import MetadataStore

RUN_BYTES_MAX: Final = 4 * 1024 * 1024
"""Longer runs are sealed in pieces, so that groups of the journal stay bounded."""


class Writer:
    """See the module's docstring."""

    def __init__(
        self,
        ledger_id: int,
        master_key: bytes,
        link: BookieLink,
        store: MetadataStore,
        call_soon: Callable[[Callable[[], None]], None],
        closed: Callable[[int], None],
    ) -> None:
        self._ledger_id = ledger_id
        self._master_key = master_key
        self._link = link
        self._store = store
        self._call_soon = call_soon
        """Calls a function soon on the loop, outside `append`."""
        self._closed = closed
        self._last_confirmed = -1
        self._next = 0
        self._length = 0
        self._length_confirmed = 0
        self._in_flight: deque[tuple[int, int, Done | None]] = deque()
        """Last entry id, payload bytes and callback of each run, in order."""
        self._refused = RefusedRuns()
        self._error: BrokerError | None = None
        self._reader = Reader(ledger_id, link, lambda: self._last_confirmed)

    @property
    def ledger_id(self) -> int:
        return self._ledger_id

    @property
    def last_confirmed(self) -> int:
        return self._last_confirmed

    @property
    def length(self) -> int:
        return self._length

    async def read(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        return await self._reader.read(first, last, bytes_max)

    async def damage(self, entry_id: int) -> tuple[int, int]:
        return await self._reader.damage(entry_id)

    def read_at_once(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        return self._reader.read_at_once(first, last, bytes_max)

    # -- appending ----------------------------------------------------------------------------

    def append(
        self, payloads: Sequence[bytes], done: Done, headers: Sequence[bytes] | None = None
    ) -> int:
        assert payloads, "a run has at least one entry"
        first = self._next
        refusal = self._error or self._refused.error
        if refusal is not None:
            self._refuse(done, refusal)
            return first
        size = size_of(payloads)
        if headers is not None:
            size += size_of(headers)
        if size > RUN_BYTES_MAX:
            if headers is not None:
                payloads = [head + body for head, body in zip(headers, payloads, strict=True)]
            return self._append_pieces(payloads, done)
        try:
            self._send(payloads, size, done, headers)
        except BrokerError as error:
            if not isinstance(error, Overloaded):
                self._error = error
            self._refuse(done, error)
        return first

    def _send(
        self,
        payloads: Sequence[bytes],
        size: int,
        done: Done | None,
        headers: Sequence[bytes] | None = None,
    ) -> None:
        if len(payloads) == 1 and len(payloads[0]) >= entries.APART_BYTES:
            head = headers[0] if headers is not None else b""
            run = entries.seal_apart(
                self._ledger_id, self._next, self._last_confirmed, self._length, payloads[0], head
            )
        else:
            run = entries.seal(
                self._ledger_id, self._next, self._last_confirmed, self._length, payloads, headers
            )
        self._link.add(run, self._master_key, self._acked)
        self._next += len(payloads)
        self._length += size
        self._in_flight.append((self._next - 1, size, done))

    def _append_pieces(self, payloads: Sequence[bytes], done: Done) -> int:
        """Seal a long run in pieces; `done` is called for the last one.

        If a piece in the middle is refused, the ledger accepts no more: the entries of the pieces
        before it have ids that the caller does not know.
        """
        first = self._next
        largest = max(map(len, payloads))
        if largest > entries.ENTRY_BYTES_MAX - entries.OVERHEAD_BYTES:
            self._refuse(done, Invalid(f"an entry of {largest} bytes is larger than any may be"))
            return first
        piece: list[bytes] = []
        size = 0
        try:
            for payload in payloads:
                if piece and size + len(payload) > RUN_BYTES_MAX:
                    self._send(piece, size, None)
                    piece, size = [], 0
                piece.append(payload)
                size += len(payload)
            self._send(piece, size, done)
        except BrokerError as error:
            if self._next != first or not isinstance(error, Overloaded):
                self._error = error
            self._refuse(done, error)
        return first

    def _acked(self, error: BrokerError | None) -> None:
        """Report the oldest run in flight: it is durable, or has failed."""
        if not self._in_flight:  # closing the ledger has reported it
            return
        last, size, done = self._in_flight.popleft()
        if error is None:
            self._last_confirmed = last
            self._length_confirmed += size
        elif self._error is None:
            self._error = error
        if done is not None:
            done(error)
        if self._refused.error is not None:
            self._report_refused()

    def _refuse(self, done: Done, error: BrokerError) -> None:
        self._refused.add(self._next - 1, done, error)
        self._call_soon(self._report_refused)

    def _report_refused(self) -> None:
        oldest = self._in_flight[0][0] if self._in_flight else self._next
        self._refused.report(oldest - 1)

    # -- closing ------------------------------------------------------------------------------

    async def close(self) -> LedgerInfo:
        if self._error is None:
            self._error = Fenced(f"ledger {self._ledger_id} is closed")
        in_flight, self._in_flight = self._in_flight, deque()
        last, length = self._last_confirmed, self._length_confirmed
        self._next, self._length = last + 1, length
        for _, _, done in in_flight:
            if done is not None:
                done(self._error)
        self._report_refused()

        def seal(ledger: LedgerMetadata) -> bool:
            if ledger.state == ledger_metadata.CLOSED:
                if (ledger.lastEntryId, ledger.length) == (last, length):
                    return False
                raise Fenced(f"ledger {self._ledger_id} was recovered by another")
            if ledger.state == ledger_metadata.IN_RECOVERY:
                raise Fenced(f"ledger {self._ledger_id} is being recovered by another")
            ledger.state = ledger_metadata.CLOSED
            ledger.lastEntryId, ledger.length = last, length
            return True

        try:
            ledger = await metadata_loop.change(self._store, self._ledger_id, seal)
        finally:
            self._closed(self._ledger_id)
        return ledger_metadata.info(self._ledger_id, ledger)
