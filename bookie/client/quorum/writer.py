"""The single writer of an open ledger on several bookies.

Runs are sealed at once, with the last entry confirmed by then, and sent to their bookies;
`ensemble_adds.py` reports them in order. Nobody else changes the metadata of an open ledger, but
for a recovery, which also ends it: another state, or another last segment than this writer has
written, means that it has been taken over.

Invariants: `last_confirmed` never goes back; after an error other than `Overloaded` every later run
fails with the same error; a refused run uses up no entry id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import trio

from magnetar.bookie.client.quorum.ensemble_adds import ClientServices, EnsembleAdds
from magnetar.bookie.client.quorum.ledger_view import Ensemble, LedgerView, put_segment
from magnetar.bookie.client.quorum.pending_adds import PendingAdds
from magnetar.bookie.client.quorum.reader import QuorumReader
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.refused_runs import RefusedRuns
from magnetar.bookie.client.writer import RUN_BYTES_MAX
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format import digests, entries, ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.rpc.client_wire import ENTRY_BYTES_MAX
from magnetar.bookie.rpc.messages import BookieMessage, Status, WriteLac
from magnetar.core.kernel.errors import BrokerError, Fenced, Invalid, Overloaded, StorageFailed
from magnetar.core.ports.ledger_store import Done, LedgerInfo

PAYLOAD_BYTES_MAX = ENTRY_BYTES_MAX - entries.HEADER_BYTES - digests.DIGEST_BYTES_MAX
RECORD_TRIES = 5
RECORD_PAUSE_SECONDS = 0.5
"""Between tries to write metadata when the store has not said whether it did."""


class QuorumWriter:
    """See the module's docstring."""

    def __init__(
        self,
        view: LedgerView,
        services: ClientServices,
        settings: QuorumSettings,
        ledgers: ClusterLedgers,
        closed: Callable[[int], None],
    ) -> None:
        self.view = view
        self._services = services
        self._ledgers = ledgers
        self._closed = closed
        self._pending = PendingAdds(view.striping, view.last_segment[1])
        self._adds = EnsembleAdds(
            services, self._pending, view.striping, view.master_key, self._record, self._ended
        )
        self._next = 0
        self._length = 0
        self._told = -1
        """What bookies have heard to be confirmed, with an entry or explicitly."""
        self._reported = -1
        """The last entry of the last run that was reported, whether it is stored or has failed."""
        self._refused = RefusedRuns()
        self._error: BrokerError | None = None
        self._reader = QuorumReader(
            view, services, settings, lambda: self._pending.last_confirmed, self._refresh
        )

    @property
    def ledger_id(self) -> int:
        return self.view.ledger_id

    @property
    def last_confirmed(self) -> int:
        return self._pending.last_confirmed

    @property
    def length(self) -> int:
        return self._length

    async def read(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        return await self._reader.read(first, last, bytes_max)

    async def damage(self, entry_id: int) -> tuple[int, int]:
        return await self._reader.damage(entry_id)

    def read_at_once(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        return self._reader.read_at_once(first, last, bytes_max)

    async def _refresh(self) -> bool:
        """Only this writer makes segments; but lost bookies of older ones may be replaced.

        What was read may be older than a segment that was made meanwhile: then it is not taken.
        """
        ledger = await self._ledgers.read(self.ledger_id)
        last = ledger.segment[-1]
        if (last.firstEntryId, tuple(last.ensembleMember)) != self.view.last_segment:
            return False
        return ledger.state == ledger_metadata.OPEN and self.view.follow(ledger)

    def bookies_changed(self) -> None:
        """There are other bookies than before."""
        self._adds.bookies_changed()

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
        if self._services.refuses:
            self._refuse(done, Overloaded("too much waits for the bookies"))
            return first
        size = sum(map(len, payloads))
        if headers is not None:
            size += sum(map(len, headers))
        if size > min(RUN_BYTES_MAX, PAYLOAD_BYTES_MAX):
            if headers is not None:
                payloads = [head + body for head, body in zip(headers, payloads, strict=True)]
            self._append_pieces(payloads, done)
        else:
            self._send(payloads, size, done, headers)
        return first

    def _send(
        self,
        payloads: Sequence[bytes],
        size: int,
        done: Done | None,
        headers: Sequence[bytes] | None = None,
    ) -> None:
        ledger_id, lac = self.ledger_id, self._pending.last_confirmed
        if not self.view.has_crc32c:
            begin = entries.DigestHeader(ledger_id, self._next, lac, self._length)
            run = digests.seal_run(self.view.digest, begin, payloads, headers)
        elif len(payloads) == 1 and len(payloads[0]) >= entries.APART_BYTES:
            head = headers[0] if headers is not None else b""
            run = entries.seal_apart(ledger_id, self._next, lac, self._length, payloads[0], head)
        else:
            run = entries.seal(ledger_id, self._next, lac, self._length, payloads, headers)
        self._next += len(payloads)
        self._length += size
        self._told = lac
        self._services.unconfirmed_bytes += run.size
        self._adds.send(run, self._length, partial(self._done, run.last, run.size, done))

    def tell_lac(self) -> None:
        """Tell the bookies what is confirmed, if they have not heard it (`ExplicitLacUpdateFlow`
        of 4.18). One that fails is told again the next time, unless an entry does it before.
        """
        lac = self._pending.last_confirmed
        if lac <= self._told or self._error is not None:
            return
        self._told = lac
        packet = digests.seal_lac(self.view.digest, self.ledger_id, lac)
        request = WriteLac(self.ledger_id, lac, self.view.master_key, packet)
        for bookie in dict.fromkeys(self.view.last_segment[1]):
            self._services.connections.to(bookie, 3).ask(request, partial(self._lac_told, lac))

    def _lac_told(self, lac: int, response: BookieMessage | BrokerError) -> None:
        if getattr(response, "status", None) is not Status.OK and self._told == lac:
            self._told = lac - 1

    def _append_pieces(self, payloads: Sequence[bytes], done: Done) -> None:
        """Send a long run in pieces; `done` is called for the last one."""
        largest = max(map(len, payloads))
        if largest > PAYLOAD_BYTES_MAX:
            self._refuse(done, Invalid(f"an entry of {largest} bytes is larger than any may be"))
            return
        piece: list[bytes] = []
        size = 0
        for payload in payloads:
            if piece and size + len(payload) > RUN_BYTES_MAX:
                self._send(piece, size, None)
                piece, size = [], 0
            piece.append(payload)
            size += len(payload)
        self._send(piece, size, done)

    def _done(self, last: int, size: int, done: Done | None, error: BrokerError | None) -> None:
        """A run is stored, or has failed."""
        self._reported = last
        self._services.unconfirmed_bytes -= size
        if done is not None:
            done(error)
        if self._refused.error is not None:
            self._report_refused()

    def _refuse(self, done: Done, error: BrokerError) -> None:
        self._refused.add(self._next - 1, done, error)
        self._services.connections.call_soon(self._report_refused)

    def _report_refused(self) -> None:
        self._refused.report(self._reported)

    def _ended(self, error: BrokerError) -> None:
        """Nothing is stored any more."""
        if self._error is None:
            self._error = error

    # -- metadata -----------------------------------------------------------------------------

    async def _record(self, first: int, ensemble: Ensemble) -> None:
        """Write a segment to the metadata (`LedgerHandle.ensembleChangeLoop` of 4.18)."""
        before = self.view.last_segment

        def change(ledger: LedgerMetadata) -> bool:
            self._check_open(ledger)
            last = ledger.segment[-1]
            found = last.firstEntryId, tuple(last.ensembleMember)
            if found == (first, ensemble):  # an earlier try was successful
                return False
            if found != before:
                raise Fenced(f"ledger {self.ledger_id} was changed by another")
            put_segment(ledger, first, ensemble)
            return True

        self.view.follow(await self._change(change))

    async def _change(self, transform: Callable[[LedgerMetadata], bool]) -> LedgerMetadata:
        """Change the metadata. A store that has not answered may have written them, so it is tried
        again, which finds that out.
        """
        for _ in range(RECORD_TRIES - 1):
            try:
                return await self._ledgers.change(self.ledger_id, transform)
            except StorageFailed:
                await trio.sleep(RECORD_PAUSE_SECONDS)
        return await self._ledgers.change(self.ledger_id, transform)

    def _check_open(self, ledger: LedgerMetadata) -> None:
        if ledger.state == ledger_metadata.CLOSED:
            raise Fenced(f"ledger {self.ledger_id} was closed by another")
        if ledger.state == ledger_metadata.IN_RECOVERY:
            raise Fenced(f"ledger {self.ledger_id} is being recovered by another")

    # -- closing ------------------------------------------------------------------------------

    async def close(self) -> LedgerInfo:
        self._adds.end(Fenced(f"ledger {self.ledger_id} is closed"))
        self._report_refused()
        last, length = self._pending.last_confirmed, self._pending.length_confirmed
        self._next, self._length = last + 1, length

        def seal(ledger: LedgerMetadata) -> bool:
            closed = ledger.state == ledger_metadata.CLOSED
            if closed and (ledger.lastEntryId, ledger.length) == (last, length):
                return False
            self._check_open(ledger)
            ledger.state = ledger_metadata.CLOSED
            ledger.lastEntryId, ledger.length = last, length
            return True

        try:
            ledger = await self._change(seal)
        finally:
            self._closed(self.ledger_id)
        return ledger_metadata.info(self.ledger_id, ledger)
