"""The file of the audit trail, rotated by size: the former ones are `audit.log.1`, `audit.log.2`...

A line is written at once, by one call, so a killed server has lost none, and servers that share a
file do not mix theirs. It is not synced: a power cut may take the last seconds. If another program
moves the file away, a new one is begun within a second.

Invariant: an error of the disk refuses nobody; it is logged, and what is lost is counted.
"""

import logging
import os
from pathlib import Path
from typing import Final

from magnetar.core.kernel.clock import Clock
from magnetar.operator_error import OperatorError

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""How often it is looked whether the file is still there."""


class AuditFile:
    """See the module's docstring."""

    def __init__(self, path: Path, bytes_max: int, former_max: int, clock: Clock) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._former_max = former_max
        self._clock = clock
        self._descriptor = -1
        self._size = 0
        self._looked = clock.monotonic()
        self.lost = 0
        """Lines that could not be written."""
        self._told = False
        try:
            self._open()
        except OSError as error:
            raise OperatorError(
                f"security.audit_log: cannot write {path}: {error.strerror}"
            ) from None

    def write(self, line: bytes) -> None:
        """Append a line. Plain call."""
        try:
            self._look()
            if self._size and self._size + len(line) > self._bytes_max:
                self._rotate()
            self._append(line)
        except OSError as error:
            self.lost += 1
            if not self._told:
                log.error("security.audit_log: lines are lost: %s: %s", self._path, error)
            self._told = True
        else:
            self._told = False

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _append(self, line: bytes) -> None:
        written = os.write(self._descriptor, line)
        self._size += written
        if written < len(line):  # the disk is full: end the piece, so that the next line is whole
            os.write(self._descriptor, b"\n")
            raise OSError("the disk is full")

    def _look(self) -> None:
        """Open the file, unless it is open and still has its name."""
        now = self._clock.monotonic()
        if self._descriptor >= 0 and now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        if self._descriptor < 0 or not self._has_its_name():
            self.close()
            self._open()

    def _has_its_name(self) -> bool:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(self._descriptor)
        self._size = mine.st_size  # others may write, too
        return (found.st_ino, found.st_dev) == (mine.st_ino, mine.st_dev)

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        flags |= os.O_NONBLOCK  # a FIFO that nobody reads is an error, and no wait
        self._descriptor = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    def _rotate(self) -> None:
        """Begin a new file; whoever comes second, of servers that share it, finds that done."""
        if self._has_its_name() and self._size:
            for number in range(self._former_max, 0, -1):
                former = self._former(number - 1)
                if former.exists():
                    former.replace(self._former(number))
            if not self._former_max:
                self._path.unlink()
        self.close()
        self._open()

    def _former(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path
