"""Is whoever stands in the way still there? Asked before a client is told that a place is taken.

A client whose connection broke comes back on a new one while the old one is not known to be dead.
Being told "busy" is final for many clients, so the old connection is pinged first: if nothing
comes, it is given up, and the newcomer gets its place.

Invariant: a connection that this server does not read just now is never taken for dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from wire.pulsar.session.session import PulsarSession

ANSWER_SECONDS: Final = 5.0


async def is_gone(holder: PulsarSession, asking: PulsarSession) -> bool:
    """Whether the holder's client has gone; if so nothing of it is attached any more."""
    if holder is asking:
        return False
    if not holder.gone and not holder.connection.paused:
        heard = holder.pong
        holder.wire.ping()
        holder.connection.touch()
        with trio.move_on_after(ANSWER_SECONDS):
            await heard.wait()
        if heard.is_set() or holder.connection.paused:
            return False
        reason = f"silent for {ANSWER_SECONDS:.0f} s while another wanted its place"
        holder.connection.end(reason)
        holder.closed(reason)
    return holder.gone
