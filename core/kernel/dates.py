"""Times as admin tools read them: ISO 8601 with an offset. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999: no calendar goes further."""


def iso_date(ms: int | None) -> str | None:
    """None for no time, and for one that no calendar has: clients send what they like."""
    if ms is None or not 0 <= ms <= MS_MAX:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
