"""Adds to the bookies of an ensemble: sending, answers, and other bookies for those that fail.

`PendingAdds` has the rules, and this module carries them out. A failure that is the ledger's own
(`Fenced`, `Unauthorized`) ends it. Any other is one bookie's, which gets a substitute: a new
segment begins, and what is not confirmed yet is sent to the new bookie as well. If there is no
other bookie, it goes on without, as long as every entry has its ack quorum, until there is one
(`LedgerHandle.ensembleChangeLoop`, `EnsembleUtils.replaceBookiesInEnsemble` of BookKeeper 4.18;
there the ledger ends if there is no other bookie).

`Overloaded` of our own connection says of a writer's bookie that it does not keep up. A recovery
asks for as much as it likes, so it waits, and sends again: that is no failure of the bookie.

Invariant: `record` has been successful before anything counts on the bookies of a new ensemble.
"""

from __future__ import annotations

import logging
import math
from array import array
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import trio

from magnetar.bookie.client.connection.connections import Connections
from magnetar.bookie.client.connection.statuses import error_of
from magnetar.bookie.client.quorum.pending_adds import PendingAdd, PendingAdds
from magnetar.bookie.client.quorum.placement import Placement
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format.entries import Run, header_of
from magnetar.bookie.rpc.client_wire import pack_adds
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.errors import (
    BrokerError,
    Fenced,
    Overloaded,
    StorageFailed,
    Unauthorized,
)
from magnetar.core.ports.ledger_store import Done

Record = Callable[[int, tuple[str, ...]], Awaitable[None]]
"""Has a segment recorded, with its first entry and its bookies. Its errors end the adds."""
log = logging.getLogger(__name__)
OVERLOAD_PAUSE_SECONDS: Final = 0.05
"""Before a recovery tries again what a connection had no room for."""
PAUSE_SECONDS: Final = 0.2
"""Between two changes of one ensemble, since each writes metadata and may leave a segment."""


class ClientServices:
    """What adds and reads of all ledgers share: connections, the choice of bookies, a limit."""

    def __init__(
        self,
        connections: Connections,
        placement: Placement,
        nursery: trio.Nursery,
        unconfirmed_bytes_max: int,
    ) -> None:
        self.connections = connections
        self.placement = placement
        self.nursery = nursery
        self.unconfirmed_bytes = 0
        """Entries that wait for their quorum."""
        self._unconfirmed_bytes_max = unconfirmed_bytes_max

    @property
    def congested(self) -> bool:
        """Too much waits: who appends should pause."""
        return self.unconfirmed_bytes > self._unconfirmed_bytes_max

    @property
    def refuses(self) -> bool:
        """Far too much waits."""
        return self.unconfirmed_bytes > 2 * self._unconfirmed_bytes_max


class EnsembleAdds:
    """See the module's docstring. `ended` is called once, with the error that ends it."""

    def __init__(
        self,
        services: ClientServices,
        pending: PendingAdds,
        striping: Striping,
        master_key: bytes,
        record: Record,
        ended: Callable[[BrokerError], None],
    ) -> None:
        self.pending = pending
        self.recovery = False
        """Whether the bookies are to take adds in spite of a fence."""
        self._services = services
        self._striping = striping
        self._master_key = master_key
        self._record = record
        self._ended = ended
        self._over = False
        self._changed_at = -math.inf
        self._held_back: list[tuple[PendingAdd, int, str]] = []
        """Adds of a recovery that connections had no room for, by position and bookie."""

    def send(self, run: Run, length: int, done: Done | None) -> None:
        """Store a run; `length` is the ledger's, with it. `done` is not called from within."""
        if run.count == 1 or self._striping.ensemble == self._striping.write:
            self._send_run(run, length, done)
            return
        # Entries next to each other are on other bookies.
        offsets, last = run.offsets, run.last
        for place, entry_id in enumerate(range(run.first, last + 1)):
            length = header_of(run, entry_id).length
            record = run.blob[offsets[place] : offsets[place + 1]]
            one = Run(run.ledger_id, entry_id, record, array("I", (0, len(record))))
            self._send_run(one, length, done if entry_id == last else None)

    def _send_run(self, run: Run, length: int, done: Done | None) -> None:
        pending = self.pending.add(run, length, done)
        frames = pack_adds(run, self._master_key, recovery=self.recovery)
        ensemble = self.pending.ensemble
        for position in pending.positions:
            bookie = ensemble[position]
            answered = partial(self._answered, pending, position, bookie)
            self._services.connections.to(bookie).add(run, frames, answered)

    def _answered(
        self, pending: PendingAdd, position: int, bookie: str, result: Status | BrokerError
    ) -> None:
        if result is Status.OK:
            self.pending.acknowledge(pending, position, bookie)
            return
        if self.recovery and isinstance(result, Overloaded):
            if not self._held_back:
                self._services.nursery.start_soon(self._send_held_back)
            self._held_back.append((pending, position, bookie))
            return
        if isinstance(result, Status):
            what = f"entry {pending.run.ledger_id}:{pending.run.first}"
            result = error_of(result, bookie, what)
        if isinstance(result, Fenced | Unauthorized):
            if self.pending.ensemble[position] == bookie:
                self.end(result)
        elif self.pending.report_failure(position, bookie, pending):
            log.warning("%s", result)
            self._services.nursery.start_soon(self._change)

    async def _send_held_back(self) -> None:
        """Send again what there was no room for. What is added meanwhile begins another task."""
        await trio.sleep(OVERLOAD_PAUSE_SECONDS)
        held_back, self._held_back = self._held_back, []
        if self._over:
            return
        self._services.connections.begin()
        for add, position, bookie in held_back:
            if self.pending.ensemble[position] == bookie:  # else the other one has got it
                self._send_again(add, position)
        self._services.connections.settle()

    def bookies_changed(self) -> None:
        """There are other bookies than before: perhaps for those that it does without."""
        failed = self.pending.absent
        if failed and not self._over:
            ensemble = self.pending.ensemble
            found = self._services.placement.substitutes(ensemble, failed, self._striping)
            if found and self.pending.retry_absent():
                self._services.nursery.start_soon(self._change)

    async def _change(self) -> None:
        """Find other bookies, until none has failed. One that has just failed elsewhere is taken
        only where it cannot be done without: two dead bookies would be chosen in turn.
        """
        pending, placement = self.pending, self._services.placement
        while pending.failed and not self._over:
            failed = dict(pending.failed)
            found = placement.substitutes(pending.ensemble, failed, self._striping)
            if not found and not self._does_without(failed):
                found = placement.substitutes(
                    pending.ensemble, failed, self._striping, suspects_too=True
                )
                if not found:
                    names = ", ".join(failed.values())
                    self.end(StorageFailed(f"no bookie can take the place of {names}"))
            if found:
                await self._replace(found)

    async def _replace(self, found: Mapping[int, str]) -> None:
        """Have a segment with these bookies recorded, and send them what waits."""
        pending = self.pending
        await trio.sleep_until(self._changed_at + PAUSE_SECONDS)
        self._changed_at = trio.current_time()
        members = list(pending.ensemble)
        for position, bookie in found.items():
            members[position] = bookie
        try:
            await self._record(pending.first_affected, tuple(members))
        except BrokerError as error:
            self.end(error)
        if self._over:
            return
        self._services.connections.begin()
        for add, position in pending.replace(found):
            self._send_again(add, position)
        self._services.connections.settle()

    def _send_again(self, pending: PendingAdd, position: int) -> None:
        bookie = self.pending.ensemble[position]
        frames = pack_adds(pending.run, self._master_key, recovery=self.recovery)
        answered = partial(self._answered, pending, position, bookie)
        self._services.connections.to(bookie).add(pending.run, frames, answered)

    def _does_without(self, failed: Mapping[int, str]) -> bool:
        """Go on without these bookies, if each entry has its ack quorum all the same."""
        self._services.connections.begin()
        done = self.pending.do_without(list(failed))
        if done:
            names = ", ".join(failed.values())
            log.warning("no bookie can take the place of %s: going on without", names)
        self._services.connections.settle()
        return done

    def end(self, error: BrokerError) -> None:
        """Have nothing more stored; what is pending fails."""
        if self._over:
            return
        self._over = True
        self._ended(error)
        self._services.connections.begin()
        for pending in self.pending.fail():
            if pending.done is not None:
                pending.done(error)
        self._services.connections.settle()
