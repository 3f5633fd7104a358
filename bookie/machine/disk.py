"""Directories of this system, behind the ports `Directory` and `Disk`."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Final

from magnetar.bookie.machine.files import DIRECT, DSYNC, SystemReadFile, SystemWriteFile
from magnetar.bookie.machine.kernel_writes import open_kernel_writes
from magnetar.bookie.machine.memory import aligned
from magnetar.core.ports.disk import (
    Creation,
    Directory,
    DiskUsage,
    SubmittedWrites,
    WriteMode,
)

PROBE: Final = "probe.direct"


class SystemDirectory:
    """A `Directory` that exists."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def direct(self) -> bool:
        """Whether direct, synced writes work: tried, since accepted flags prove nothing."""
        if not (DIRECT and DSYNC):
            return False
        try:
            return self._probe()
        except OSError:
            return False
        finally:
            with suppress(OSError):
                os.unlink(self._at(PROBE))

    def _probe(self) -> bool:
        file = self.open_for_writing(PROBE, Creation.REPLACE, WriteMode.DIRECT_SYNC)
        try:
            zeros = aligned(1024)
            file.pwrite(zeros, 0)
            # The second write is aligned to 512 bytes only: some disks require 4,096 (open(2)).
            file.pwrite(zeros[:512], 512)
        finally:
            file.close()
        return True

    def _at(self, name: str) -> str:
        return f"{self.path}{os.sep}{name}"

    def open(self, name: str, *, direct: bool = False) -> SystemReadFile:
        return SystemReadFile(self._at(name), direct=direct)

    def open_for_writing(
        self, name: str, creation: Creation, mode: WriteMode = WriteMode.CACHED
    ) -> SystemWriteFile:
        return SystemWriteFile(self._at(name), creation, mode)

    def names(self) -> list[str]:
        return os.listdir(self.path)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._at(old), self._at(new))

    def link(self, old: str, new: str) -> None:
        os.link(self._at(old), self._at(new))

    def remove(self, name: str) -> None:
        path = self._at(name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def sync(self) -> None:
        _sync_names(self.path)

    def directory(self, name: str) -> SystemDirectory:
        return _make(self._at(name))


def _make(path: str) -> SystemDirectory:
    if not os.path.isdir(path):
        above = os.path.dirname(path)
        if above != path:
            _make(above or os.curdir)
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):  # else another process has just made it
                raise
        _sync_names(above or os.curdir)
    return SystemDirectory(path)


def _sync_names(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class SystemDisk:
    """A `Disk`: this system's files."""

    def directory(self, path: str) -> SystemDirectory:
        return _make(path)

    @contextmanager
    def lock(self, directory: Directory, name: str) -> Iterator[None]:
        path = f"{directory.path}{os.sep}{name}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(fd)

    def usage(self, directory: Directory) -> DiskUsage:
        found, filesystem = shutil.disk_usage(directory.path), os.stat(directory.path).st_dev
        return DiskUsage(1.0 - found.free / found.total, found.free, found.total, filesystem)

    def submitted_writes(self, buffer: memoryview) -> SubmittedWrites | None:
        return open_kernel_writes(buffer)
