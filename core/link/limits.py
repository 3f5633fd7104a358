"""Every limit of the link, with what happens when it is reached. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MEBIBYTE: Final = 1024 * 1024


class LinkLimits(Struct, frozen=True):
    """See the module's docstring. Those of memory hold for all connections together."""

    connections_max: int = 10_000
    """In all: the protocol's refusal, or a closed socket where it has none."""
    connections_per_address_max: int = 0
    """From one address, 0 for no limit: as above."""
    refusals_max: int = 64
    """Connections beyond the limit that wait for their refusal: the oldest is closed for the next.
    """
    refusal_seconds: float = 5.0
    """How long each of them may wait for its peer's first words."""
    receive_bytes: int = 256 * 1024
    """At once from one peer: more serves large messages faster, and lets others wait longer."""
    outbox_high_bytes: int = MEBIBYTE
    """Waiting for one peer: it is not read, and dispatch passes it by, until it has drained."""
    silence_seconds: float = 30.0
    """Without a byte from a peer: it is pinged; after a second such span it is closed. A session
    may allow more. A peer without a request after one span is closed."""
    unread_seconds: float = 120.0
    """Without taking a byte of what waits for it, a peer is closed."""
    sending_bytes_max: int = 64 * MEBIBYTE
    """To be sent: answers are smaller and later, deliveries wait (`outbound.py`)."""
    partial_bytes_max: int = 32 * MEBIBYTE
    """Of frames that have come in part: large ones wait for each other (`inbound.py`)."""
    storing_bytes_max: int = 32 * MEBIBYTE
    """On their way to storage: no writing peer is read until half of it is stored."""
    storing_bytes_per_connection_max: int = 16 * MEBIBYTE
    """The same of one connection, which is not read for so long."""
    stalled_seconds: float = 2.0
    """While others wait for memory, a peer that holds some and is idle for so long is closed."""
