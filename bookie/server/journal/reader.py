"""One file of the journal, opened to read its records: by a replay, and by who looks for damage.

Invariant: what does not come from `records` was not written there, or an error tells of it, as a
sentence that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.journal import HEADER_BYTES
from magnetar.bookie.format.journal_scan import RottenError, check_empty, left_over, scan
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.disk import Directory


class RottenCorrupted(Corrupted):
    """A journal is damaged before its end."""


class JournalReader:
    """See the module's docstring. Blocks."""

    def __init__(self, directory: Directory, name: str) -> None:
        self.path = f"{directory.path}/{name}"
        self._file = directory.open(name)
        self.size = self._file.size()
        self.end = 0
        """Where the records have ended, after all of them were read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, start: int, size: int) -> bytes:
        """Bytes of the file, fewer only at its end."""
        return self._file.pread(size, start)

    def records(self, offset: int, *, proving: bool) -> Iterator[Run | journal_format.Note]:
        """All from lastMark's `offset` on, in the order of writing; `RottenCorrupted` or another
        `Corrupted` where they make no sense. `proving` as for `scan`.
        """
        if self.size < offset:
            raise Corrupted(
                f"{self.path} is cut short: it has {self.size} bytes, and lastMark says {offset}"
            )
        try:
            if journal_format.read_header(self.read(0, HEADER_BYTES)):
                begin = max(offset, HEADER_BYTES)
                self.end = yield from scan(self.read, begin, proving=proving)
                return
            check_empty(self.read)
        except RottenError as error:
            raise RottenCorrupted(f"{self.path}: {error}; it is damaged before its end") from error
        except ValueError as error:
            raise Corrupted(f"{self.path}: {error}") from error
        self.end = self.size
        if offset > HEADER_BYTES:
            raise RottenCorrupted(f"{self.path} is empty, and lastMark says {offset}")

    def has_left_over(self) -> bool:
        """Whether anything stands behind the records."""
        return left_over(self.read, self.end)
