"""The highest ledger id that was ever created here, which the bookie knows without the metadata.

Ids come from a counter in the metadata store. If that is set back (an old backup, damage that an
operator accepted), new ledgers would get the entries of old ones. So the bookie has its own count,
and takes no new ledger at or below it. The file is in both directories, like the cookie, and is
written for a thousand ids at once: a crash leaves some of them unused.

    highestLedger    decimal id | LF | CRC32C of that, hex | LF

Invariant: no ledger was ever made above what the file says; nothing is made at or below it.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from magnetar.bookie.server.directories import Directories
from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import AlreadyExists, StorageFailed, StorageFull
from magnetar.core.ports.disk import Directory
from magnetar.core.ports.threads import Threads

log = logging.getLogger(__name__)

FILE: Final = "highestLedger"
IDS_RESERVED: Final = 1_000


def encode(highest: int) -> bytes:
    text = b"%d\n" % highest
    return text + b"%08x\n" % crc32c(text)


def decode(data: bytes) -> int:
    """ValueError if it is not what `encode` made."""
    text, _, _ = data.partition(b"\n")
    highest = int(text)
    if encode(highest) != data:
        raise ValueError("it does not have its checksum")
    return highest


def places(directories: Directories) -> tuple[Directory, Directory]:
    """Each has a copy of the file."""
    return directories.ledgers, directories.journal


def read(directories: Directories) -> int | None:
    """What the copies say, the higher one; None if there is none that can be believed."""
    found = []
    for directory in places(directories):
        try:
            found.append(decode(read_whole(directory, FILE)))
        except FileNotFoundError:
            continue
        except ValueError as error:
            log.warning("%s/%s is damaged: %s", directory.path, FILE, error)
    return max(found, default=None)


class LedgerIds:
    """Which ids are taken. All of it is for the loop."""

    def __init__(self, directories: Directories, threads: Threads) -> None:
        found = read(directories)
        self.known = found is not None
        """False at a bookie's first start, or if both copies are gone."""
        self.highest = -1 if found is None else found
        """Made, or perhaps made before a crash."""
        self._directories = directories
        self._threads = threads
        self._written = -1
        """What the files say."""
        self._lock = trio.Lock()

    async def note(self) -> None:
        """Have files, from now on."""
        if not self.known:
            await self._write(self.highest)
            self.known = True

    def saw(self, ledger_id: int) -> None:
        """There is something of that ledger, whatever the files say."""
        self.highest = max(self.highest, ledger_id)

    async def take(self, ledger_id: int) -> None:
        """`AlreadyExists` unless the id is new; durable when this returns."""
        if ledger_id <= self.highest:
            raise AlreadyExists(f"ledger ids up to {self.highest} have been taken, {ledger_id} too")
        self.highest = ledger_id
        while self._written < ledger_id:
            async with self._lock:
                if self._written < ledger_id:
                    await self._write(self.highest + IDS_RESERVED)

    async def _write(self, highest: int) -> None:
        with trio.CancelScope(shield=True):
            try:
                await self._threads.run(write, self._directories, highest)
            except OSError as error:
                kind = StorageFull if is_full(error) else StorageFailed
                raise kind(f"the bookie cannot note a new ledger: {error}") from error
            self._written = highest

    async def close(self) -> None:
        """Nothing was taken beyond `highest`: the next start need not skip what was reserved."""
        if self._written > self.highest:
            await self._write(self.highest)


def write(directories: Directories, highest: int) -> None:
    """Blocks: for a thread."""
    for directory in places(directories):
        write_whole(directory, FILE, encode(highest))
