"""How many producers, or consumers, one connection may have."""

from collections.abc import Sized
from typing import Final

from core.errors import NotAllowed

ATTACHED_MAX: Final = 100_000
"""Clients keep one connection for all they have, so it is far above what any of them needs."""


def check_attached(attached: Sized) -> None:
    """Raise if there is no room for one more."""
    if len(attached) >= ATTACHED_MAX:
        raise NotAllowed(f"a connection may have at most {ATTACHED_MAX} producers or consumers")
