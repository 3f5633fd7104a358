"""A snapshot of the MQTT front, for metrics and for `$SYS`."""

from __future__ import annotations

from msgspec import Struct


class MqttStatistics(Struct, frozen=True):
    """What there is now; what has happened is in `traffic.py`."""

    connected: int
    """Connected clients."""
    connected_max: int
    """The most that were connected at the same time."""
    asleep: int
    """Sessions without a connection."""
    expired: int
    """Sessions that have expired since the start."""
    waiting: int
    """Messages that sessions have not read yet, estimated in the last round of `hold.py`."""
    waiting_bytes: int
    session_bytes: int
    """Memory of the records of sessions."""
    session_bytes_stored: int
    """Size of the records of sessions, most of which are in storage only."""
    subscriptions: int
    """Those of connected clients."""
    subscription_bytes: int
    """Their memory, estimated."""
    shared_subscriptions: int
    retained: int
    """Retained messages."""
    retained_bytes: int
    """Memory of those that are in memory."""
