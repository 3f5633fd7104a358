"""A table that is replaced as a whole, with what is known of it.

    FOLDER/versions/7/part-....parquet, _about.json
    FOLDER/current -> versions/7

A version is written to the side, and is the current one when the link leads to it: one rename, so
that a kill leaves either the old one or the new one. The one before is kept for those who read it.

Invariant: `current` leads to a whole version, or is not there.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec import Struct

from magnetar.spark_connector.errors import ConnectorError
from magnetar.spark_connector.jobs.tables.lock import SNAPSHOT, FolderLock
from magnetar.spark_connector.jobs.tables.redo import write
from magnetar.spark_connector.jobs.tables.staging import sync

VERSIONS_KEPT: Final = 2
ABOUT: Final = "_about.json"


class TableVersion(Struct, frozen=True):
    """What is known of a version."""

    number: int
    positions: dict[str, tuple[int, int, int]]
    """Up to where each log is in it: ledger, entry, offset."""
    rows: int


class VersionedTable:
    """See the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._versions = folder / "versions"
        self._link = folder / "current"
        self._lock = FolderLock(folder, SNAPSHOT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def current(self) -> TableVersion | None:
        """The current version; None before the first."""
        if not self._link.exists():
            return None
        try:
            return msgspec.json.decode((self._link / ABOUT).read_bytes(), type=TableVersion)
        except (OSError, msgspec.MsgspecError) as error:
            raise ConnectorError(f"{self._link} is no version of a snapshot: {error}") from error

    def path(self, number: int) -> Path:
        """Where a version is, or is to be written."""
        return self._versions / str(number)

    def publish(self, version: TableVersion) -> None:
        """Make a version that has been written the current one."""
        path = self.path(version.number)
        for file in path.glob("*.parquet"):
            sync(file)
        write(path / ABOUT, msgspec.json.encode(version))
        sync(self._versions)
        new = self._folder / "current.new"
        new.unlink(missing_ok=True)
        new.symlink_to(path.relative_to(self._folder))
        os.replace(new, self._link)
        sync(self._folder)
        for other in self._versions.iterdir():
            if other.name.isdecimal() and int(other.name) <= version.number - VERSIONS_KEPT:
                shutil.rmtree(other)
