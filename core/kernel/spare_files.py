"""Open files held in reserve, for imports that must not fail when descriptors run out.

Some modules are imported late, with the first connection of a kind. A peer decides when, and may
have used up all descriptors of this process before. So a few files are opened at the start, and
released for the duration of such an import. (libuv reserves one for `accept`, `uv__emfile_trick`.)

Invariant: while nothing is lent, `COUNT` files are held open, or as many as could be reopened.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

COUNT: Final = 8
"""An import opens one file or folder at a time; other threads may open some meanwhile."""
EXHAUSTED: Final = frozenset([errno.EMFILE, errno.ENFILE])
"""The errors for no more descriptors: of this process, of the system."""

Lend = Callable[[], AbstractContextManager[None]]
"""Lends files to code that imports late."""


class SpareFiles:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._refill()

    @contextmanager
    def lend(self) -> Iterator[None]:
        """Release the spare files for the length of a block."""
        self._release()
        try:
            yield
        finally:
            self._refill()

    def close(self) -> None:
        self._release()

    def _release(self) -> None:
        while self._kept:
            os.close(self._kept.pop())

    def _refill(self) -> None:
        try:
            while len(self._kept) < COUNT:
                self._kept.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
