"""Keep-alive: pings silent peers, and closes those that do not answer, or do not receive.

A peer is pinged after one span of silence and closed after two (`keepAliveIntervalSeconds` in
Pulsar). A session may allow more; but a peer without a valid request is closed after one span,
whatever bytes it sent. A connection that is paused cannot receive: it is closed only if its peer
takes nothing of what is sent.

Invariant: every connection is checked once in a span. All spans are equal, so a queue in order of
the next check suffices, without a timer per connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from magnetar.core.link.limits import LinkLimits

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection


class Silence:
    """See the module's docstring."""

    def __init__(self, limits: LinkLimits) -> None:
        self._span = limits.silence_seconds
        self._unread_seconds = limits.unread_seconds
        self._looks: OrderedDict[Connection, float] = OrderedDict()
        """When each connection is checked next, in that order."""

    def enter(self, connection: Connection, now: float) -> None:
        self._looks[connection] = now + self._span

    def leave(self, connection: Connection) -> None:
        del self._looks[connection]

    def expired(self, now: float) -> Iterator[tuple[Connection, str]]:
        """Connections to close, with the reason. Each is to `leave` before the next is checked."""
        while self._looks:
            connection, at = next(iter(self._looks.items()))
            if at > now:
                return
            reason = self._judged(connection, now)
            if reason is not None:
                yield connection, reason
            if connection in self._looks:
                alive_at = connection.progress if connection.outbox else connection.heard
                self._looks[connection] = max(alive_at + self._span, now + self._span / 2)
                self._looks.move_to_end(connection)

    def _judged(self, connection: Connection, now: float) -> str | None:
        """The reason to close it; None if it may stay, perhaps with a ping."""
        waits = connection.paused or connection.partial.large is not None
        if not connection.introduced and not waits and now - connection.since >= self._span:
            return f"it has not introduced itself in {now - connection.since:.0f} s"
        if connection.outbox:
            silent = now - connection.progress
            if silent >= self._unread_seconds:
                return f"it took nothing for {silent:.0f} s"
        elif connection.paused:
            return None
        else:
            silent = now - connection.heard
        allowed = max(self._span, connection.session.silence_seconds_allowed)
        if silent < allowed:
            return None
        if silent >= 2 * allowed or connection.pinged:
            return f"silent for {silent:.0f} s"
        connection.pinged = True
        connection.session.quiet()
        return None
