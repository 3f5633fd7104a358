"""Times in ISO 8601 with an offset, as Pulsar's admin tools read them (`DateFormatter`). Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999, the last one that `datetime` has."""


def iso_date(ms: int | None) -> str | None:
    """The date; None for no time, and for one out of range, since clients send any number."""
    if ms is None or not 0 <= ms <= MS_MAX:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
