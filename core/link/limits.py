"""All limits of the link, and what happens when one is reached. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MEBIBYTE: Final = 1024 * 1024


class LinkLimits(Struct, frozen=True):
    """See the module's docstring. Limits of memory hold for all connections together."""

    connections_max: int = 10_000
    """All connections; further ones are refused by their protocol, or closed if it cannot."""
    connections_per_address_max: int = 0
    """Connections from one address, 0 for no limit; further ones as above."""
    refusals_max: int = 64
    """Connections beyond the limit that wait for their refusal; the oldest is closed first."""
    refusal_seconds: float = 5.0
    """How long each of them may wait for its peer's first request."""
    receive_bytes: int = 256 * 1024
    """Received at once from one peer. More is faster for large messages, and delays other peers."""
    outbox_high_bytes: int = MEBIBYTE
    """Waiting for one peer; beyond, it is not read and gets no deliveries until it has drained."""
    silence_seconds: float = 30.0
    """A peer that is silent for this span is pinged, and closed after a second one. A session may
    allow more. A peer without a valid request is closed after one span."""
    unread_seconds: float = 120.0
    """A peer that receives nothing for this long, while bytes wait for it, is closed."""
    sending_bytes_max: int = 64 * MEBIBYTE
    """Bytes to be sent; near the limit replies are smaller and later, and deliveries wait
    (`core/link/memory/outbound.py`)."""
    partial_bytes_max: int = 32 * MEBIBYTE
    """Bytes of partial frames; at the limit large frames wait (`core/link/memory/inbound.py`)."""
    storing_bytes_max: int = 32 * MEBIBYTE
    """Bytes being stored; at the limit no writing peer is read until half are stored."""
    storing_bytes_per_connection_max: int = 16 * MEBIBYTE
    """Bytes of one connection being stored; at the limit it is not read until half are stored."""
    stalled_seconds: float = 2.0
    """A peer that holds memory for which others wait is closed after this time without progress."""
