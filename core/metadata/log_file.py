"""The file of a commit log: zeros written ahead, appends, and a step back by one commit.

Invariant: space is allocated before a commit is written, so that a full disk shows before anything
has changed; bytes behind the end have no meaning.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from magnetar.core.metadata import commit_log, files
from magnetar.core.metadata.commit_log import Commit, Head
from magnetar.core.metadata.files import CHUNK_BYTES

FIRST_BYTES: Final = 64 * 1024
"""The size of a new log: small, so that a start is quick."""
GROWTH_BYTES: Final = 512 * 1024


class Contents(msgspec.Struct, frozen=True):
    """The content of a log."""

    head: Head
    commits: list[Commit]
    data: bytes

    @property
    def number(self) -> int:
        return self.commits[-1].number if self.commits else self.head.number

    @property
    def chain(self) -> int:
        return self.commits[-1].chain if self.commits else self.head.chain

    @property
    def end(self) -> int:
        return self.commits[-1].end if self.commits else commit_log.HEAD_BYTES


def read(path: Path) -> Contents:
    """Read all valid commits; OSError, or ValueError if it is no log."""
    data = path.read_bytes()
    head = commit_log.decode_head(data)
    return Contents(head, list(commit_log.commits(data, head)), data)


def create(path: Path, head: Head, *, sync: bool) -> LogFile:
    files.write_whole(path, commit_log.encode_head(head).ljust(FIRST_BYTES, b"\0"), sync=sync)
    log = LogFile(path, sync=sync)
    log.number, log.chain = head.number, head.chain
    return log


def reopen(path: Path, contents: Contents, *, sync: bool) -> LogFile:
    """Open a log for appending; remains of a torn write behind its end are wiped."""
    log = LogFile(path, sync=sync)
    log.number, log.chain, log.position = contents.number, contents.chain, contents.end
    rest = contents.data[contents.end :]
    if rest.count(0) != len(rest):
        files.write_at(log.fd, bytes(len(rest)), log.position, sync=sync)
    return log


class LogFile:
    """See the module's docstring."""

    def __init__(self, path: Path, *, sync: bool) -> None:
        self.fd = files.open_synced(path, sync=sync)
        self.number = self.chain = 0
        """Number and checksum of the last commit."""
        self.position = commit_log.HEAD_BYTES
        self._sync = sync
        self._size = os.fstat(self.fd).st_size
        self._before = (0, 0, 0)

    def append(self, body: bytes) -> None:
        """Append a commit; durable on return. After an OSError call `step_back`, then `wipe`."""
        data = commit_log.encode_commit(self.number + 1, self.chain, body)
        self._before = (self.number, self.chain, self.position)
        self._make_room(self.position + len(data))
        files.write_at(self.fd, data, self.position, sync=self._sync)
        self.number, self.chain = self.number + 1, commit_log.chain_of(data)
        self.position += len(data)

    def step_back(self) -> None:
        """Return to before the last `append`, successful or not; its bytes stay until `wipe`."""
        self.number, self.chain, self.position = self._before

    def wipe(self) -> None:
        """Overwrite the beginning of a commit at the position."""
        if self.position + len(_BLANK) <= self._size:
            files.write_at(self.fd, _BLANK, self.position, sync=self._sync)

    def _make_room(self, requested: int) -> None:
        if requested <= self._size:
            return
        size = requested + GROWTH_BYTES
        start = self._size
        while start < size:
            start += os.pwrite(self.fd, bytes(min(CHUNK_BYTES, size - start)), start)
        if self._sync:
            files.sync_file(self.fd)
        self._size = size

    def close(self) -> None:
        os.close(self.fd)


_BLANK: Final = bytes(commit_log.ALIGNMENT_BYTES)
"""Written over the beginning of a commit, which invalidates it."""
