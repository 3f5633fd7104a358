"""The ports over a test's own directory, for tests that look at the files themselves."""

from pathlib import Path

from magnetar.bookie.machine.disk import SystemDirectory, SystemDisk
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.server.directories import Directories, make_directories
from magnetar.bookie.server.journal.files import JournalFiles


def directory_at(path: Path) -> SystemDirectory:
    return SystemDisk().directory(str(path))


def directories_at(path: Path) -> Directories:
    return make_directories(directory_at(path))


def journal_files_at(path: Path, *, size_max: int, spares_max: int) -> JournalFiles:
    lock = SystemThreads().lock()
    return JournalFiles(directory_at(path), lock, size_max=size_max, spares_max=spares_max)
