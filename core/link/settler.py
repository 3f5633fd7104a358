"""The task that settles for work from outside a sweep, once, in the next turn of trio.

A task that is woken costs a third of a call by trio's token, which goes through a socket. Before
the task runs, and after it has ended, it is the token: storage goes on when the link has ended.

Invariant: what is scheduled is settled once or more later, while trio runs.
"""

from __future__ import annotations

from collections.abc import Callable

import trio


class Settler:
    """See the module's docstring."""

    def __init__(self, settle: Callable[[], None]) -> None:
        self.is_scheduled = False
        """Whoever settles sets it to False."""
        self._settle = settle
        self._token: trio.lowlevel.TrioToken | None = None
        self._waits = trio.lowlevel.ParkingLot()
        self._runs = False

    def begin(self) -> None:
        """From now on there is a loop."""
        self._token = trio.lowlevel.current_trio_token()

    def schedule(self) -> None:
        if self._token is None:
            return  # the link settles when it begins
        self.is_scheduled = True
        if self._runs:
            self._waits.unpark()
        else:
            self._token.run_sync_soon(self._settle)

    async def run(self) -> None:
        """Settle as scheduled, until cancelled."""
        self._runs = True
        try:
            while True:
                if self.is_scheduled:
                    await trio.lowlevel.checkpoint()
                else:
                    await self._waits.park()
                if self.is_scheduled:  # else a sweep has settled meanwhile
                    self._settle()
        finally:
            self._runs = False
            if self.is_scheduled:
                self.schedule()
