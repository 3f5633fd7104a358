"""Calls that threads ask for, made in a sweep, so that what they cause is sent at its end.

A link that waits in its poller would not hear of trio's token, which also takes a turn of trio. So
a thread rings an eventfd(2) that the poller watches. Where there is none, and while the link does
not run, threads are told so, and use the token.

Invariant: each call that was accepted is made, once and in order; the last ones when the link ends.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from magnetar.core.link.readiness.poller import READ, Poller

log = logging.getLogger(__name__)


class CallsInSweeps:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.expected = 0
        """While it is not 0, the link polls for a call as for a write of the journal."""
        self._calls: deque[Callable[[], object]] = deque()
        self._bell = -1
        self._lock = threading.Lock()
        """Held while a thread rings, so that it does not write to what else gets the number."""

    def call(self, what: Callable[[], object]) -> bool:
        """Have a call made, from any thread; False if it is not accepted."""
        with self._lock:
            if self._bell < 0:
                return False
            self._calls.append(what)
            os.eventfd_write(self._bell, 1)
        return True

    def are_expected(self) -> bool:
        return self.expected > 0 and self._bell >= 0

    def begin(self, poller: Poller) -> int:
        """The link runs. Returns a descriptor: `make` the calls whenever it is readable; -1 for
        none.
        """
        if hasattr(os, "eventfd"):
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            poller.watch(self._bell, READ)
        return self._bell

    def make(self) -> None:
        """Make all that have been accepted."""
        with suppress(BlockingIOError):  # the bell of the last ones may have been heard before
            os.eventfd_read(self._bell)
        self._make_all()

    def make_waiting(self) -> None:
        """The same, at any time."""
        if self._calls:
            self.make()

    def end(self) -> None:
        """The link ends."""
        with self._lock:
            bell, self._bell = self._bell, -1
        if bell >= 0:
            os.close(bell)
        self._make_all()

    def _make_all(self) -> None:
        while self._calls:
            try:
                self._calls.popleft()()
            except Exception:  # a defect of ours, which is not to cost the others theirs
                log.exception("a call of a thread failed")
