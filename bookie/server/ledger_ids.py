"""The highest ledger id ever created here, known without the metadata store.

Ids come from a counter in the metadata store. If that is set back (an old backup, damage that an
operator accepted), new ledgers would have the entries of old ones. So the bookie has its own count,
and refuses to create a ledger at or below it; Apache's bookies have nothing like it. The file is in
both directories, like the cookie. It is written for a thousand ids at once, some of which a crash
leaves unused.

    highestLedger    decimal id | LF | CRC32C of that, hex | LF

Invariant: no ledger was ever created above the id in the file.
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
    """Parse the file; ValueError if it is damaged."""
    text, _, _ = data.partition(b"\n")
    highest = int(text)
    if encode(highest) != data:
        raise ValueError("it does not have its checksum")
    return highest


def places(directories: Directories) -> tuple[Directory, Directory]:
    """The directories with a copy of the file."""
    return directories.ledgers, directories.journal


def read(directories: Directories) -> int | None:
    """The higher of the two copies; None if there is no intact one."""
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
    """The ids that are taken. All methods are for the loop."""

    def __init__(self, directories: Directories, threads: Threads) -> None:
        found = read(directories)
        self.known = found is not None
        """False at a bookie's first start, or if both copies are gone."""
        self.highest = -1 if found is None else found
        """The highest id that was created, or may have been before a crash."""
        self._directories = directories
        self._threads = threads
        self._written = -1
        """The id in the files."""
        self._lock = trio.Lock()

    async def note(self) -> None:
        """Write the files if there are none."""
        if not self.known:
            await self._write(self.highest)
            self.known = True

    def saw(self, ledger_id: int) -> None:
        """Reserve an id that is in use, even if the files do not know it."""
        self.highest = max(self.highest, ledger_id)

    async def take(self, ledger_id: int) -> None:
        """Take a new id, durably; `AlreadyExists` if it is not new."""
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
        """Give back reserved ids, so that the next start does not skip them."""
        if self._written > self.highest:
            await self._write(self.highest)


def write(directories: Directories, highest: int) -> None:
    """Write both copies. Blocks: for a thread."""
    for directory in places(directories):
        write_whole(directory, FILE, encode(highest))
