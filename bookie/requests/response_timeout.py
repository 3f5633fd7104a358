"""How long responses wait for a client that does not receive.

Apache's bookie waits `waitTimeoutOnResponseBackpressureMs` for room in a channel; then it drops the
response, and all others of that channel for the same time, or closes it
(`closeChannelOnResponseTimeout`; `PacketProcessorBase.sendResponse` of 4.18). By default, here as
there, it waits as long as the connection is open: the link closes it after `unread_seconds`.

Here the reads wait, not their responses: those are dropped, until the client receives again.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.bookie.requests.deadlines import Deadline
from magnetar.bookie.requests.services import BookieServices


class ResponseTimeout:
    """That of one connection."""

    def __init__(self, services: BookieServices, over: Callable[[], None]) -> None:
        """`over` is called when the time is over and the client has received nothing."""
        self.is_over = False
        """Whether responses are dropped."""
        self._deadlines = services.deadlines
        self._seconds = services.limits.wait_timeout_on_response_backpressure_ms / 1000
        self._over = over
        self._deadline: Deadline | None = None

    def begin(self) -> None:
        """Responses wait for the client."""
        if self._seconds >= 0 and self._deadline is None and not self.is_over:
            self._deadline = self._deadlines.call_in(self._seconds, self._ended)

    def _ended(self) -> None:
        self._deadline, self.is_over = None, True
        self._over()

    def end(self) -> None:
        """The client receives again, or its connection is closed."""
        self.is_over = False
        if self._deadline is not None:
            self._deadlines.cancel(self._deadline)
            self._deadline = None
