"""The options of all groups. Pure."""

from __future__ import annotations

from msgspec import Struct


class GroupOptions(Struct, frozen=True):
    """See the module's docstring."""

    size_max: int = 10_000
    """Members of one group, in either protocol."""
    first_delay_seconds: float = 0.0
    """How long the first member of a classic group waits for others."""
    session_ms_min: int = 6_000
    session_ms_max: int = 1_800_000
    """The bounds of the session timeout that members of classic groups choose."""
    consumer_heartbeat_ms: int = 5_000
    consumer_session_ms: int = 45_000
    """The timing of members of consumer groups."""
    retention_ms: int = 10_080 * 60_000
    """Retention of the offsets of a group without members."""
    retention_check_ms: int = 600_000
