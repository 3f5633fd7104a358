"""What the topics of a broker leave to the end of a sweep: dispatch, and appends.

There may be hundreds of subscriptions to serve. Those that are not reached in time are first in the
next sweep, so that reading, storing and sending go on in between.

Invariant: whatever waits here, the link has been asked for a sweep that serves it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from magnetar.core.kernel.clock import Clock
from magnetar.core.ledger.storage import PendingLog
from magnetar.core.topic.subscription.subscription import PersistentSubscription

log = logging.getLogger(__name__)

DISPATCH_SECONDS_MAX: Final = 0.005
"""The longest dispatch in one sweep; other work of the sweep follows."""


class SweepWork:
    """See the module's docstring."""

    def __init__(self, clock: Clock, schedule: Callable[[], None], *, gathers: bool) -> None:
        """`schedule` asks for a sweep. Unless it `gathers`, appends are written at once."""
        self._clock = clock
        self._schedule = schedule
        self._gathers = gathers
        self._dirty: list[PersistentSubscription] = []
        self._appended: list[PendingLog] = []

    def add(self, subscription: PersistentSubscription) -> None:
        """A subscription has work."""
        self._dirty.append(subscription)
        self._schedule()

    def dispatch(self) -> None:
        """Serve the subscriptions that have work."""
        if self._dirty:
            dirty, self._dirty = self._dirty, []
            self._dispatch(dirty)

    def _dispatch(self, dirty: list[PersistentSubscription]) -> None:
        until = self._clock.monotonic() + DISPATCH_SECONDS_MAX
        for at, subscription in enumerate(dirty):
            if at and self._clock.monotonic() >= until:
                self._dirty[:0] = dirty[at:]
                self._schedule()
                return
            try:
                if subscription.dispatch():
                    subscription.schedule()
            except Exception:
                # a defect of ours: these consumers reconnect, and the server goes on
                log.exception("subscription %s: dispatch failed", subscription.name)
                subscription.disconnect_all()

    def gather(self, ledger: PendingLog) -> None:
        """A log has the first append of this sweep."""
        if not self._gathers:
            ledger.write()
            return
        self._appended.append(ledger)
        self._schedule()

    def store(self) -> None:
        """Write what all producers have appended in this sweep."""
        if self._appended:
            appended, self._appended = self._appended, []
            for ledger in appended:
                ledger.write()
