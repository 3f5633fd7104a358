"""Reads entry logs slowly in the background, and reports damage before a reader meets it.

Every record on the disk is compared with its digest. Reads bypass the page cache, which may hide
damage on the disk, and must keep the pages that readers use. A log consists of records without
gaps, so a gap between whole records is a hole. Only the index knows which entries were in it; it is
read once for each log with holes. Missing logs are found in the same way, before each round.

An entry is reported if the index still locates it there and its ledger still exists: compaction and
garbage collection go on meanwhile, and damage of unneeded bytes deserves no report.

Apache's `InterleavedLedgerStorage.localConsistencyCheck` (4.18) starts from the index instead.

Invariant: each range of entries is reported once. Nothing is repaired or changed here.
"""

from __future__ import annotations

import errno
import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio
from msgspec import Struct

from magnetar.bookie.format import entries
from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.locations import LOST
from magnetar.bookie.machine.memory import aligned
from magnetar.bookie.recovery import salvage
from magnetar.bookie.recovery.salvage import Salvaged
from magnetar.bookie.server.garbage.ledger_catalog import LedgerCatalog
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import Corrupted, LedgerNotFound, StorageFailed
from magnetar.core.ports.disk import Directory

log = logging.getLogger(__name__)

WINDOW_BYTES: Final = 64 * 1024
"""Bytes checked at once: a millisecond or two with small entries."""
PAGE_BYTES: Final = 4096
START_SECONDS: Final = 10.0
REST_SECONDS: Final = 6 * 3600.0
"""The pause between two rounds: a small server reads nothing for most of the day."""
LOOK_SECONDS: Final = 0.02
PLACE: Final = "scrubbed"
"""The file with the id of the last log that was read through."""
UNREADABLE: Final = b"\xff"
"""Replaces each byte that the disk cannot read."""
_FAR: Final = 1 << 63

Hole = tuple[int, int]
"""Locations: the first, and the one behind the last."""
Matches = Callable[[int], bool]
"""Whether a location is looked for."""


class ScrubberStatistics(Struct, frozen=True):
    """A snapshot of counts since the start."""

    bytes: int
    rounds: int
    damaged_ranges: int
    damaged_entries: int


class StoppedError(Exception):
    """The bookie stops: a pass over an index ends before its end."""


class Scrubber:
    """See the module's docstring."""

    def __init__(
        self,
        storage: LedgerStorage,
        catalog: LedgerCatalog | None,
        finished: Callable[[], Awaitable[list[int]]],
        bytes_per_second: int,
    ) -> None:
        """`finished` returns the logs that are closed and completely indexed."""
        self._storage = storage
        self._catalog = catalog
        self._finished = finished
        self._rate = bytes_per_second
        self._run = storage.machine.threads.run
        self._stopping = False
        self._reported: set[tuple[int, int, int]] = set()
        self._bytes = self._rounds = self._entries = 0

    def statistics(self) -> ScrubberStatistics:
        return ScrubberStatistics(self._bytes, self._rounds, len(self._reported), self._entries)

    async def run(self) -> None:
        """Run until cancelled; at a rate of 0 nothing is read."""
        if not self._rate:
            return
        await trio.sleep(START_SECONDS)
        with suppress(StoppedError):
            while True:
                await self.round()
                await trio.sleep(REST_SECONDS)

    def stop(self) -> None:
        """End a pass over an index soon: a cancelled task waits for its thread, and with millions
        of entries such a pass takes minutes.
        """
        self._stopping = True

    async def round(self) -> None:
        """Read each log once, going on where the round before a restart stopped."""
        await self._report(
            await self._select(_once_for_each_log(self._is_missing), self._is_missing)
        )
        logs = await self._finished()
        behind = [log_id for log_id in logs if log_id > self._place()]
        for log_id in behind or logs:
            try:
                await self._scrub(log_id)
            except FileNotFoundError:
                continue  # compacted, or deleted
            await self._run(self._note_place, log_id)
        self._rounds += 1
        if behind:
            await self._run(self._note_place, -1)

    async def _scrub(self, log_id: int) -> None:
        directory = self._storage.directories.logs
        with _PastTheCache(directory, log_format.file_name(log_id)) as file:
            end = await self._run(self._end, log_id)
            walk = _Walk(log_id, end, file, self._is_unjudged)
            while await self._run(walk.step):
                await self._pace(file)
        if walk.holes:
            await self._report(await self._select(walk.is_in_a_hole, walk.is_in_a_hole))

    def _is_unjudged(self, run: Run) -> bool:
        row = self._storage.ledgers.find(run.ledger_id)
        return row is not None and row.other_digest

    def _end(self, log_id: int) -> int:
        try:
            return self._storage.reader.ledgers_map_offset(log_id) or self._size(log_id)
        except Corrupted:
            return self._size(log_id)

    def _size(self, log_id: int) -> int:
        return self._storage.reader.size(log_id)

    async def _pace(self, file: _PastTheCache) -> None:
        """Wait for as long as the bytes read since the last call may take."""
        size, file.bytes = file.bytes, 0
        self._bytes += size
        await trio.sleep(size / max(self._rate, 1))

    # -- what is in a hole --------------------------------------------------------------------

    def _is_missing(self, location: int) -> bool:
        name = log_format.file_name(location >> 32)
        return location != LOST and name not in self._storage.directories.logs.names()

    async def _select(self, may_match: Matches, matches: Matches) -> list[tuple[int, int, int]]:
        return await self._run(self._select_blocking, may_match, matches)

    def _select_blocking(self, may_match: Matches, matches: Matches) -> list[tuple[int, int, int]]:
        """Ranges (ledger, first, last) of entries that the index has at matching locations.

        A location is looked up again before it counts: the first pass over the index is slow.
        """
        locations = self._storage.locations
        ranges: list[tuple[int, int, int]] = []
        for ledger_id, entry_id in locations.entries_at(may_match, self._pause):
            now = locations.find(ledger_id, entry_id)
            if now is None or not matches(now):
                continue
            if ranges and ranges[-1][0] == ledger_id and ranges[-1][2] == entry_id - 1:
                ranges[-1] = (ledger_id, ranges[-1][1], entry_id)
            else:
                ranges.append((ledger_id, entry_id, entry_id))
        return ranges

    async def _report(self, ranges: list[tuple[int, int, int]]) -> None:
        for one in ranges:
            ledger_id, first, last = one
            if one in self._reported:
                continue
            try:
                owner = "nobody known"
                if self._catalog is not None:
                    owner = await self._catalog.owner(ledger_id)
            except (LedgerNotFound, Corrupted):
                continue  # the ledger is deleted
            except StorageFailed as error:
                owner = f"somebody ({error})"
            self._reported.add(one)
            self._entries += last - first + 1
            log.error(
                "rot on the disk: entries %d:%d to %d:%d of %s cannot be read",
                ledger_id, first, ledger_id, last, owner,
            )  # fmt: skip

    def _pause(self) -> None:
        """Pause between two parts of the index, of a millisecond or two each."""
        if self._stopping:
            raise StoppedError
        self._storage.machine.threads.pause(LOOK_SECONDS)

    # -- where it was -------------------------------------------------------------------------

    def _place(self) -> int:
        try:
            return int(read_whole(self._storage.directories.ledgers, PLACE))
        except (OSError, ValueError):
            return -1

    def _note_place(self, log_id: int) -> None:
        try:
            write_whole(self._storage.directories.ledgers, PLACE, b"%d" % log_id)
        except OSError as error:
            log.info("where the scrubber is cannot be noted: %s", error)


def _once_for_each_log(is_missing: Matches) -> Matches:
    """Asks once for each log, of whose entries the index has many thousands."""
    known: dict[int, bool] = {}

    def asked(location: int) -> bool:
        if location == LOST:
            return False  # reported when the index was rebuilt
        log_id = location >> 32
        if log_id not in known:
            known[log_id] = is_missing(location)
        return known[log_id]

    return asked


class _Walk:
    """A pass through the records of one log, a window at a time."""

    def __init__(
        self, log_id: int, end: int, file: _PastTheCache, unjudged: salvage.Unjudged
    ) -> None:
        self.holes: list[Hole] = []
        self._log_id = log_id
        self._last = log_format.HEADER_BYTES
        self._end = end
        self._file = file
        self._found = salvage.records_in(
            file.read, log_id, log_format.HEADER_BYTES, end, WINDOW_BYTES, unjudged
        )

    def step(self) -> bool:
        """Go on until bytes were read; False at the end. In a thread."""
        for one in self._found:
            if isinstance(one, Salvaged):
                start = (one.location & 0xFFFFFFFF) - entries.LENGTH_BYTES
                self._note(start)
                self._last = start + one.run.offsets[-1]
            if self._file.bytes:
                return True
        self._note(self._end)
        return False

    def _note(self, start: int) -> None:
        """Note a hole before `start`, where whole records go on."""
        if start > self._last:
            first = (self._log_id << 32) | (self._last + entries.LENGTH_BYTES)
            self.holes.append((first, first + start - self._last))

    def is_in_a_hole(self, location: int) -> bool:
        place = bisect_right(self.holes, (location, _FAR)) - 1
        return place >= 0 and location < self.holes[place][1]


class _PastTheCache:
    """A file that is read with direct I/O where the system can do that."""

    def __init__(self, directory: Directory, name: str) -> None:
        self.bytes = 0
        self._file = directory.open(name, direct=True)

    def __enter__(self) -> _PastTheCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, offset: int, size: int) -> bytes:
        begin = offset - offset % PAGE_BYTES
        length = -(-(offset + size - begin) // PAGE_BYTES) * PAGE_BYTES
        buffer = aligned(length)
        try:
            got = self._file.preadv([buffer], begin)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            got = self._page_by_page(buffer, begin)
        self.bytes += got
        return bytes(buffer[offset - begin : min(offset - begin + size, got)])

    def _page_by_page(self, buffer: memoryview, begin: int) -> int:
        for at in range(0, len(buffer), PAGE_BYTES):
            page = buffer[at : at + PAGE_BYTES]
            try:
                if self._file.preadv([page], begin + at) < PAGE_BYTES:
                    break
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                page[:] = UNREADABLE * PAGE_BYTES
        return min(len(buffer), self._file.size() - begin)
