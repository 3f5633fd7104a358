"""One message in terms that every protocol has: what conversion goes through. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Header = tuple[bytes, bytes | None]
"""A name, and a value that may be absent. Names may come twice, and in any order."""

NO_TIME = -1


class Record(NamedTuple):
    """See the module's docstring."""

    place: int
    """Among the messages of its entry, counted from 0."""
    timestamp_ms: int
    """The time of its event, or when it was sent; -1 if unknown."""
    key: bytes | None
    value: bytes | None
    """None is not the same as empty: it says that what has this key is gone."""
    headers: Sequence[Header] = ()
