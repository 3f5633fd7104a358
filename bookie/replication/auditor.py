"""Decides when the ledgers of a cluster are audited; runs while we are elected.

    all bookies are audited    when we are elected, and each `check_bookies_seconds`
                               at once when several bookies are away, or one and no delay is set
                               `lostBookieRecoveryDelay` after one has left, unless it is back
                               at once when somebody writes the delay that is set already (that is
                               how Apache's tools ask for it), or 0
    all ledgers are checked    each `check_all_ledgers_seconds`, by the time that the metadata have

A bookie is away that was seen and is registered neither as writable nor as read-only; those that
were away before are found by the first audit. While re-replication is disabled nothing is audited,
and what was to be is when it is enabled again (`Auditor.java` of BookKeeper 4.18).

Invariant: what was to be done stays so until it has been done: an audit that fails is repeated.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.replication.audits import Audits
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import BrokerError

NO_VERSION: Final = -1
Result = TypeVar("Result")
log = logging.getLogger(__name__)


class Auditor:
    """See the module's docstring."""

    def __init__(
        self,
        client: ClusterClient,
        marks: UnderReplication,
        audits: Audits,
        clock: Clock,
        settings: RecoverySettings,
    ) -> None:
        self._client = client
        self._marks = marks
        self._audits = audits
        self._clock = clock
        self._settings = settings
        self._changed = trio.Event()
        self._known: set[str] = set()
        """The bookies that are not away, or whose absence is not dealt with yet."""
        self._away: set[str] = set()
        """Those that the next audit is for."""
        self._audit_at = math.inf
        """When all bookies are audited because of them, or of a request; `inf` for never."""
        self._next_audit_at = math.inf
        """When they are audited anyway."""
        self._delay = 0, NO_VERSION

    def changed(self) -> None:
        """The list of bookies is another one, or something has been written for auditors."""
        self._changed.set()

    async def run(self) -> None:
        """Audit until it is cancelled."""
        self._known.clear()
        self._away.clear()
        self._audit_at, self._next_audit_at = math.inf, trio.current_time()
        end = self._marks.watch(lambda _: self.changed())
        try:
            await self._insist(self._begin)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._audit)
                if self._settings.check_all_ledgers_seconds:
                    nursery.start_soon(self._check)
        finally:
            end()

    async def _insist(self, work: Callable[[], Awaitable[Result]]) -> Result:
        while True:
            try:
                return await work()
            except BrokerError as error:
                log.warning("the auditor tries again: %s", error)
                await trio.sleep(self._settings.error_pause_seconds)

    async def _begin(self) -> None:
        if await self._marks.delay() is None:
            await self._marks.set_delay(self._settings.lost_bookie_recovery_delay_seconds)
        self._delay = await self._marks.delay() or self._delay

    # -- bookies ------------------------------------------------------------------------------

    async def _audit(self) -> None:
        while True:
            self._changed = trio.Event()
            with trio.move_on_at(await self._insist(self._step)):
                await self._changed.wait()

    async def _step(self) -> float:
        """Do what is due; when to look again, if nothing changes before."""
        running = self._running()
        if not running or not await self._marks.is_enabled():
            return math.inf
        self._look_at_bookies(running)
        await self._look_at_delay()
        now, interval = trio.current_time(), self._settings.check_bookies_seconds or math.inf
        if self._next_audit_at <= now < self._audit_at < math.inf:
            self._next_audit_at = now + interval  # it would find a bookie that may be back soon
        if min(self._audit_at, self._next_audit_at) <= now:
            await self._audits.audit_bookies()
            self._away.clear()
            self._audit_at, self._next_audit_at = math.inf, now + interval
        return min(self._audit_at, self._next_audit_at)

    def _running(self) -> set[str]:
        """The bookies that are not away. None at all tells of the list, and not of the bookies."""
        return {*self._client.bookies.writable, *self._client.bookies.read_only}

    def _look_at_bookies(self, running: set[str]) -> None:
        self._known |= running
        if self._away and self._away <= running:
            log.info("%s is back: no audit", ", ".join(self._away))
            self._away.clear()
            self._audit_at = math.inf
        gone = self._known - running
        self._known -= gone
        self._away |= gone
        if not gone:
            return
        now, (delay, _) = trio.current_time(), self._delay
        if len(self._away) > 1 or not delay:
            self._audit_at = now
        else:
            self._audit_at = min(self._audit_at, now + delay)
        wait = self._audit_at - now
        log.warning("lost: %s; audit in %g s", ", ".join(sorted(self._away)), wait)

    async def _look_at_delay(self) -> None:
        found = await self._marks.delay()
        if found is None or found == self._delay:
            return
        (delay, _), (before, _) = found, self._delay
        self._delay = found
        if delay in (0, before):
            self._audit_at = trio.current_time()
        elif self._audit_at < math.inf:
            self._audit_at = trio.current_time() + delay

    # -- ledgers ------------------------------------------------------------------------------

    async def _check(self) -> None:
        while True:
            await trio.sleep(await self._insist(self._seconds_until_check))
            await self._insist(self._check_once)

    async def _seconds_until_check(self) -> float:
        interval = self._settings.check_all_ledgers_seconds
        checked = await self._marks.checked_ms()
        if checked is None:
            return 0
        since = (self._clock.wall_ms() - checked) / 1000
        return interval - min(max(since, 0), interval)

    async def _check_once(self) -> None:
        if self._running() and await self._marks.is_enabled():
            await self._audits.check_all_ledgers()
        else:  # the next one is due then
            await trio.sleep(self._settings.error_pause_seconds)
