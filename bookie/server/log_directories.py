"""Several ledger directories, as the one `Directory` of all entry logs.

A new log goes to the next directory in turn whose disk has room, so that the disks fill and work
alike (Apache's bookie takes one at random, `LedgerDirsManager.pickRandomWritableDir` of 4.18). All
other files are in the first directory, with the indexes: locations name a log, wherever it is.
Apache's storage keeps instead each ledger in one of the directories, by its id, with indexes in
each (`DbLedgerStorage.getLedgerStorage`): there a directory cannot be added, and a full one stops
the ledgers that belong to it.

Invariant: a log is in one directory, in which it stays.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from magnetar.bookie.format import entry_log as log_format
from magnetar.core.ports.disk import Creation, Directory, ReadFile, WriteFile, WriteMode


class LogDirectories:
    """A `Directory`; see the module's docstring. One thread at a time changes anything."""

    def __init__(self, directories: Sequence[Directory]) -> None:
        self.directories = tuple(directories)
        self.full: frozenset[int] = frozenset()
        """The places of those whose disks have no room, as they were seen last."""
        self.look: Callable[[], None] = lambda: None
        """Looks at the disks, and says which are full: called before a log begins."""
        self._places: dict[str, int] = {}
        """Of the logs that were looked for."""
        self._turn = self._newest()
        """The place of the last new log."""

    def _newest(self) -> int:
        found = [
            (log_format.log_id(name), place)
            for place, each in enumerate(self.directories)
            for name in each.names()
            if log_format.is_log(name)
        ]
        return max(found, default=(-1, -1))[1]

    @property
    def path(self) -> str:
        return self.directories[0].path

    @property
    def direct(self) -> bool:
        return all(each.direct for each in self.directories)

    def is_left(self, name: str) -> bool:
        """Whether a log should go on elsewhere: its disk has no room, and another has."""
        return self._place(name) in self.full and len(self.full) < len(self.directories)

    def place_of(self, name: str) -> int:
        """The place of the directory that has a file; of a log that is nowhere, the one where the
        last one was to begin.
        """
        place = self._place(name)
        return self._turn if place is None else place

    def _place(self, name: str) -> int | None:
        """None for a log that is nowhere."""
        if not log_format.is_log(name):
            return 0
        place = self._places.get(name)
        if place is None:
            for number, directory in enumerate(self.directories):
                if name in directory.names():
                    place = self._places[name] = number
                    break
        return place

    def _with(self, name: str) -> Directory:
        place = self._place(name)
        if place is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)
        return self.directories[place]

    def open(self, name: str, *, direct: bool = False) -> ReadFile:
        return self._with(name).open(name, direct=direct)

    def open_for_writing(
        self, name: str, creation: Creation, mode: WriteMode = WriteMode.CACHED
    ) -> WriteFile:
        place = self._place(name)
        if place is None:
            self.look()
            place = self._turn = self._next()
        file = self.directories[place].open_for_writing(name, creation, mode)
        self._places[name] = place
        return file

    def _next(self) -> int:
        """The place of the next new log."""
        count = len(self.directories)
        turns = [(self._turn + i) % count for i in range(1, count + 1)]
        return next((place for place in turns if place not in self.full), turns[0])

    def names(self) -> list[str]:
        return [name for each in self.directories for name in each.names()]

    def rename(self, old: str, new: str) -> None:
        self._with(old).rename(old, new)
        self._forget(old)

    def link(self, old: str, new: str) -> None:
        self._with(old).link(old, new)

    def remove(self, name: str) -> None:
        self._with(name).remove(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._places.pop(name, None)

    def sync(self) -> None:
        for each in self.directories:
            each.sync()

    def directory(self, name: str) -> Directory:
        return self.directories[0].directory(name)
