"""The highest ledger id that was ever made here: what the bookie knows of it without the metadata.

Ids come from a counter in the metadata store. Should that be set back (an old backup, damage that
somebody accepted), new ledgers would be given the entries of old ones. So the bookie keeps its own
count, and takes no new ledger at or below it. It is kept in both directories, like the cookie, and
written for a thousand ids at once: what a crash leaves unused of them is skipped.

    highestLedger    decimal id | LF | CRC32C of that, hex | LF

Invariant: no ledger was ever made above what the file says; nothing is made at or below it.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Final

import trio

from magnetar.bookie.server.directories import Directories, write_whole
from magnetar.bookie.server.disk_usage import is_full
from magnetar.core.checksum import crc32c
from magnetar.core.errors import AlreadyExists, StorageFailed, StorageFull

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


def places(directories: Directories) -> tuple[Path, Path]:
    return directories.ledgers / FILE, directories.journal / FILE


def read(directories: Directories) -> int | None:
    """What the copies say, the higher one; None if there is none that can be believed."""
    found = []
    for path in places(directories):
        try:
            found.append(decode(path.read_bytes()))
        except FileNotFoundError:
            continue
        except ValueError as error:
            log.warning("%s is damaged: %s", path, error)
    return max(found, default=None)


class LedgerIds:
    """Which ids are taken. All of it is for the loop."""

    def __init__(self, directories: Directories) -> None:
        said = read(directories)
        self.known = said is not None
        """False at a bookie's first start, or if both copies are gone."""
        self.highest = -1 if said is None else said
        """Made, or perhaps made before a crash."""
        self._directories = directories
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
                await trio.to_thread.run_sync(partial(write, self._directories, highest))
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
    for path in places(directories):
        write_whole(path, encode(highest))
