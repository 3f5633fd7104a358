"""Whether the holder of a place is still there, before another client hears that it is taken.

A client whose connection broke comes back on a new one while the old one is not known to be dead.
"Busy" is final for many clients, so the old connection is pinged first: if nothing
comes, it is given up, and the newcomer gets its place.

What it says meanwhile is a sign of life as good as the answer, which may be behind much else: a
connection whose requests are many is not read for a while, and then read on. So is that it takes
what has waited for it: until it has done so it may not be read.

Invariant: a connection that this server does not read just now is never taken for dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.client import PulsarClient

ANSWER_SECONDS: Final = 5.0


async def is_gone(holder: PulsarClient, newcomer: PulsarClient) -> bool:
    """Whether the holder's client is gone; if so, everything of it is detached."""
    if holder is newcomer:
        return False
    if not holder.gone and not holder.connection.paused:
        heard, connection = holder.pong, holder.connection
        received, taken = connection.received_bytes, connection.taken_bytes
        waits = connection.outbox_bytes > 0  # else what is taken is what its system takes for it
        holder.wire.ping()
        connection.touch()
        with trio.move_on_after(ANSWER_SECONDS):
            await heard.wait()
        if heard.is_set() or connection.paused or connection.received_bytes != received:
            return False
        if waits and connection.taken_bytes != taken:
            return False
        holder.end(f"silent for {ANSWER_SECONDS:.0f} s while another wanted its place")
    return holder.gone
