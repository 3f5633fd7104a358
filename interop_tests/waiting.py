"""To wait for what nobody tells: look again and again, until it is so or time is over."""

import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 60.0
PAUSE_SECONDS = 0.02

Found = TypeVar("Found")


def until(
    look: Callable[[], Found],
    otherwise: Callable[[], object] | str = "it has not come to that",
    seconds: float = SECONDS,
) -> Found:
    """Returns the first thing found that is true; `otherwise` is what the failure says."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() >= deadline:
            raise AssertionError(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(PAUSE_SECONDS)
    return found
