"""A disk in memory that can lose power: the verified fake of the port `Disk`.

It records every step that changes anything. `cuts` yields the disks after a power cut during each
step, with unsynced data lost at random (see `disk_image.py`). `before` is called with each step and
may raise, to simulate a full or failing disk. `rot` damages durable bytes.
"""

from __future__ import annotations

import errno
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import trio

from magnetar.core.ports.disk import Creation, Directory, DiskUsage, WriteMode
from magnetar.core.testing.disk_image import ROOT, SECTOR_BYTES, Choose, DiskImage

PlainCall = Callable[[], object]


class MemoryDisk:
    """See the module's docstring. Thread-safe."""

    def __init__(self, *, direct: bool = True, image: DiskImage | None = None) -> None:
        self.direct = direct
        """Whether direct and submitted writes work."""
        self.usage_now = DiskUsage(0.5, 1 << 40)
        self.before: Callable[[str, str], None] = lambda step, path: None
        """Called with the step's name and path."""
        self.files: dict[int, MemoryWriteFile] = {}
        """Files open for writing, by `fileno`."""
        self.numbers = itertools.count(1000)
        self._image = image or DiskImage()
        self._first = self._image.copy()
        self.history: list[tuple[str, tuple[Any, ...]]] = []
        """Every step and its arguments."""
        self.later: Callable[[PlainCall], None] | None = None
        """Makes a call when the disk has done a submitted write; without it, that is done at once.
        """
        self._begun: tuple[str, tuple[Any, ...]] | None = None
        """The step that `before` is asked about."""
        self._locked: set[str] = set()
        self._mutex = threading.Lock()
        self._watchers: dict[int, Callable[[], None]] = {}

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return len(self.history)

    @property
    def image(self) -> DiskImage:
        return self._image

    def change(self, step: str, path: str, *arguments: Any) -> Any:
        """Carry out and record one step."""
        self._begun = step, arguments
        try:
            self.before(step, path)
        finally:
            self._begun = None
        with self._mutex:
            self.history.append((step, arguments))
            return getattr(self._image, step)(*arguments)

    def cuts(self, choose: Choose, path: str | None = None) -> Iterator[tuple[int, MemoryDisk]]:
        """Yield, for a power cut during each step and one after the last: the number of completed
        steps, and the disk that the next start finds. With a `path`, that is a disk of its own, and
        loses power alone.
        """
        image = self._first.copy()
        for count in range(len(self.history) + 1):
            cut = image.copy()
            if count < len(self.history):
                _begin(cut, *self.history[count])
            cut.lose(choose, path)
            yield count, MemoryDisk(direct=self.direct, image=cut)
            if count < len(self.history):
                step, arguments = self.history[count]
                getattr(image, step)(*arguments)

    def left(self, choose: Choose | None) -> MemoryDisk:
        """The disk that the next start finds if the process ends now; with `choose`, by a loss of
        power. Within `before` that is during the step that begins.
        """
        image = self._image.copy()
        if choose is not None:
            if self._begun is not None:
                _begin(image, *self._begun)
            image.lose(choose)
        return MemoryDisk(direct=self.direct, image=image)

    def rot(self, path: str, offset: int, mask: int = 0x40) -> None:
        """Flip bits of a durable byte."""
        self.change("rot", path, self._number(path), offset, mask)

    def _number(self, path: str) -> int:
        number = ROOT
        for name in filter(None, path.split("/")):
            number = self._image.find(number, name)
        return number

    # -- the port -----------------------------------------------------------------------------

    def directory(self, path: str) -> MemoryDirectory:
        found = MemoryDirectory(self, "", ROOT)
        for name in filter(None, path.split("/")):
            found = found.directory(name)
        return found

    @contextmanager
    def lock(self, directory: Directory, name: str) -> Iterator[None]:
        path = f"{directory.path}/{name}"
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        self._locked.add(path)
        try:
            yield
        finally:
            self._locked.remove(path)

    def usage(self, directory: Directory) -> DiskUsage:
        return self.usage_now

    def submitted_writes(self, buffer: memoryview) -> MemorySubmittedWrites | None:
        return MemorySubmittedWrites(self, buffer) if self.direct else None

    def watch(self, descriptor: int, call: Callable[[], None], due: Callable[[], bool]) -> None:
        """Make the call when the descriptor is readable, as a link does."""
        self._watchers[descriptor] = call

    def ended(self, descriptor: int) -> None:
        """End a submitted write: make the call of `watch`."""
        if descriptor in self._watchers:
            self._watchers[descriptor]()


def _begin(image: DiskImage, step: str, arguments: tuple[Any, ...]) -> None:
    """Begin a step during which the power fails, so that none of it is durable for certain."""
    if step == "write":
        number, offset, data, _ = arguments
        image.write(number, offset, data, False)
    elif step not in ("sync", "make_directory", "finish_write"):
        getattr(image, step)(*arguments)


class MemoryDirectory:
    """A `Directory`."""

    def __init__(self, disk: MemoryDisk, path: str, number: int) -> None:
        self.path = path
        self._disk = disk
        self._number = number

    @property
    def direct(self) -> bool:
        return self._disk.direct

    def _find(self, name: str) -> int:
        return self._disk.image.find(self._number, name)

    def open(self, name: str, *, direct: bool = False) -> MemoryReadFile:
        return MemoryReadFile(self._disk, self._find(name))

    def open_for_writing(
        self, name: str, creation: Creation, mode: WriteMode = WriteMode.CACHED
    ) -> MemoryWriteFile:
        path, number = (
            f"{self.path}/{name}",
            self._disk.image.directory(self._number).names.get(name),
        )
        if creation is Creation.NEW and number is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if mode is not WriteMode.CACHED and not self._disk.direct:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        if number is None:
            if creation is Creation.EXISTING:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            number = self._disk.change("create", path, self._number, name)
        file = MemoryWriteFile(self._disk, path, number, mode)
        if creation is Creation.REPLACE:
            file.truncate(0)
        return file

    def names(self) -> list[str]:
        return list(self._disk.image.directory(self._number).names)

    def rename(self, old: str, new: str) -> None:
        self._find(old)
        self._disk.change("rename", f"{self.path}/{new}", self._number, old, new)

    def link(self, old: str, new: str) -> None:
        if new in self.names():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        self._find(old)
        self._disk.change("link", f"{self.path}/{new}", self._number, old, new)

    def remove(self, name: str) -> None:
        self._find(name)
        self._disk.change("remove", f"{self.path}/{name}", self._number, name)

    def sync(self) -> None:
        self._disk.change("sync", self.path, self._number)

    def directory(self, name: str) -> MemoryDirectory:
        path, number = (
            f"{self.path}/{name}",
            self._disk.image.directory(self._number).names.get(name),
        )
        if number is None:
            number = self._disk.change("make_directory", path, self._number, name)
        return MemoryDirectory(self._disk, path, number)


class MemoryReadFile:
    """A `ReadFile`."""

    def __init__(self, disk: MemoryDisk, number: int) -> None:
        self._disk = disk
        self._number = number
        self._closed = False

    @property
    def _data(self) -> bytearray:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._disk.image.file(self._number).data

    def pread(self, size: int, offset: int, /) -> bytes:
        if size < 0 or offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return bytes(self._data[offset : offset + size])

    def preadv(self, buffers: Sequence[memoryview], offset: int, /) -> int:
        count = 0
        for buffer in buffers:
            piece = self._data[offset + count : offset + count + len(buffer)]
            buffer[: len(piece)] = piece
            count += len(piece)
        return count

    def size(self) -> int:
        return len(self._data)

    def close(self) -> None:
        self._data  # noqa: B018 - closing twice is a mistake
        self._closed = True


class MemoryWriteFile:
    """A `WriteFile`."""

    def __init__(self, disk: MemoryDisk, path: str, number: int, mode: WriteMode) -> None:
        self.number = number
        self.path = path
        self._disk = disk
        self._mode = mode
        self._descriptor = next(disk.numbers)
        disk.files[self._descriptor] = self

    def _change(self, step: str, *arguments: Any) -> None:
        if self._descriptor not in self._disk.files:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._disk.change(step, self.path, self.number, *arguments)

    def fileno(self) -> int:
        return self._descriptor

    def pwrite(self, data: bytes | memoryview, offset: int, /) -> int:
        data = bytes(data)
        if self._mode is not WriteMode.CACHED and (
            offset % SECTOR_BYTES or len(data) % SECTOR_BYTES
        ):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._change("write", offset, data, self._mode is WriteMode.DIRECT_SYNC)
        return len(data)

    def begin_write(self, data: bytes, offset: int) -> int:
        """Begin a write that is durable with `finish_write`."""
        self._change("write", offset, data, False)
        return len(data)

    def finish_write(self, data: bytes, offset: int) -> int:
        self._change("finish_write", offset, data)
        return len(data)

    def pwritev(self, pieces: Sequence[bytes], offset: int, /) -> int:
        return self.pwrite(b"".join(pieces), offset)

    def truncate(self, size: int, /) -> None:
        self._change("resize", size)

    def reserve(self, start: int, size: int) -> bool:
        return False

    def allocate(self, size: int) -> None:
        self._change("resize", size)

    def sync(self) -> None:
        self._change("sync")

    def close(self) -> None:
        if self._disk.files.pop(self._descriptor, None) is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class MemorySubmittedWrites:
    """`SubmittedWrites`: each is done at once, and reported in the next turn of the loop. If the
    disk takes its time (`later`), it is visible at once, and durable when it is reported.
    """

    def __init__(self, disk: MemoryDisk, buffer: memoryview) -> None:
        self.descriptor = next(disk.numbers)
        self.busy = False
        self._disk = disk
        self._buffer = buffer
        self._result: int | OSError = 0
        self._finish: Callable[[], int] | None = None
        """What makes the write durable that is on its way."""

    def begin(self, fd: int, offset: int, start: int, size: int) -> None:
        assert not self.busy, "one write at a time"
        self.busy = True
        file, data = self._disk.files[fd], self._buffer[start : start + size]
        if self._disk.later is None:
            self._note(lambda: file.pwrite(data, offset))
            _call_later(self._disk.ended, self.descriptor)
            return
        whole = bytes(data)
        self._note(lambda: file.begin_write(whole, offset))
        self._finish = lambda: file.finish_write(whole, offset)
        self._disk.later(self._done)

    def _note(self, step: Callable[[], int]) -> None:
        try:
            self._result = step()
        except OSError as error:
            self._result = error

    def _done(self) -> None:
        if self._finish is not None:
            finish, self._finish = self._finish, None
            if not isinstance(self._result, OSError):
                self._note(finish)
            self._disk.ended(self.descriptor)

    def ended(self) -> int | None:
        if not self.busy:
            return None
        self.busy = False
        if isinstance(self._result, OSError):
            raise self._result
        return self._result

    def wait(self) -> None:
        if self._finish is not None:
            finish, self._finish = self._finish, None
            self._note(finish)

    def close(self) -> None:
        return


def _call_later(call: Callable[[int], None], descriptor: int) -> None:
    """Make the call in the next turn of the loop."""
    trio.lowlevel.current_trio_token().run_sync_soon(call, descriptor)
