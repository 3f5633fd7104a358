"""A message in terms of all protocols, for conversion from one form to another. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Header = tuple[bytes, bytes | None]
"""A name, and a value that may be absent. Names may repeat, as in Kafka (KIP-82)."""

NO_TIME = -1


class Record(NamedTuple):
    """See the module's docstring."""

    place: int
    """Its place in its entry, from 0."""
    timestamp_ms: int
    """The time of its event, else of publishing; -1 if unknown."""
    key: bytes | None
    value: bytes | None
    """None differs from empty: it is a tombstone for the key."""
    headers: Sequence[Header] = ()
