"""Open files held in reserve, for what must not fail where a process may have no more of them.

Modules that are imported late, with the first connection of a kind, are files that have to be
opened then; and a peer decides when that is, who may first have taken all descriptors that this
process may have. So a few are opened at the start, and given back for as long as an import takes.

Invariant: while nothing is lent, `COUNT` files are held open, or as many as could be had again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

COUNT: Final = 8
"""An import opens a folder or a file at a time; a thread that loads others may take some as well.
"""
EXHAUSTED: Final = frozenset([errno.EMFILE, errno.ENFILE])
"""What the system says where there are no more: to this process, to everybody."""

Lend = Callable[[], AbstractContextManager[None]]
"""Lends files to code that imports late."""


class SpareFiles:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._refill()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """So many more files may be opened inside."""
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
