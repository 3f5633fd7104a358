"""Finds out whether the holder of a name or subscription is dead, before a newcomer is refused.

A client whose connection broke reconnects while the broker still believes in the old connection.
"Busy" is final for many clients, so the broker pings the old connection first. Without a sign of
life it is closed, and the newcomer takes over.

Any received byte is a sign of life, since the PONG may be behind many requests. So is progress in
receiving its output: a connection that does not receive may not be read.

Invariant: a connection that this server itself does not read is never taken for dead.
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
        waits = connection.outbox_bytes > 0  # else only its system's buffer has taken them
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
