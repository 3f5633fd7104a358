"""The contents of a disk, and what survives a power cut. Pure.

Every file and directory is a node with two states, the visible and the durable one, and the ordered
list of pending changes between them. At a power cut, `lose` decides for each pending change:

    bytes   each 512-byte sector of a write, and each change of size, survives or does not
    names   the changes of a directory up to some point survive, later ones do not

Sectors are atomic, as disks promise; writes are not. File systems keep the order of changes of
names in one directory (their own journal does that), but not that of different directories, nor
that of names and bytes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from copy import deepcopy
from typing import Final

SECTOR_BYTES: Final = 512
ROOT: Final = 0
"""The number of the root directory."""

Choose = Callable[[int], int]
"""Returns a random number below its argument."""


class FileNode:
    """The bytes of one file."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []
        """Writes (offset, bytes) and new sizes (size, None) that are not durable."""

    def sync(self) -> None:
        self.durable = bytearray(self.data)
        self.pending.clear()

    def lose(self, choose: Choose) -> None:
        for offset, data in self.pending:
            if data is None:
                if choose(2):
                    _resize(self.durable, offset)
            else:
                _tear(self.durable, offset, data, choose)
        self.data = bytearray(self.durable)
        self.pending.clear()


class DirectoryNode:
    """The names in one directory, and the numbers of their nodes."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.durable: dict[str, int] = {}
        self.pending: list[dict[str, int | None]] = []
        """Changes: names with their new node, or None for a removal."""

    def change(self, names: dict[str, int | None]) -> None:
        _rename(self.names, names)
        self.pending.append(names)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def lose(self, choose: Choose) -> None:
        for names in self.pending[: choose(len(self.pending) + 1)]:
            _rename(self.durable, names)
        self.names = dict(self.durable)
        self.pending.clear()


class DiskImage:
    """All nodes by their number. Each method but `find` and `lose` is one step of a history."""

    def __init__(self) -> None:
        self.nodes: list[FileNode | DirectoryNode] = [DirectoryNode()]

    def file(self, number: int) -> FileNode:
        node = self.nodes[number]
        assert isinstance(node, FileNode)
        return node

    def directory(self, number: int) -> DirectoryNode:
        node = self.nodes[number]
        assert isinstance(node, DirectoryNode)
        return node

    def find(self, directory: int, name: str) -> int:
        found = self.directory(directory).names.get(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)
        return found

    def copy(self) -> DiskImage:
        return deepcopy(self)

    def lose(self, choose: Choose, path: str | None = None) -> None:
        """Cut the power: of the disk at a path only, if one is given; then others keep all."""
        struck = range(len(self.nodes)) if path is None else self._below(path)
        for number, node in enumerate(self.nodes):
            if number in struck:
                node.lose(choose)
            else:
                node.sync()

    def _below(self, path: str) -> set[int]:
        """Everything at a path, with what was there and may be there again."""
        top: int | None = ROOT
        for name in filter(None, path.split("/")):
            top = None if top is None else self.directory(top).names.get(name)
        waiting: list[int] = [] if top is None else [top]
        found: set[int] = set()
        while waiting:
            number = waiting.pop()
            found.add(number)
            node = self.nodes[number]
            if isinstance(node, DirectoryNode):
                waiting += [*node.names.values(), *node.durable.values()]
                waiting += [one for names in node.pending for one in names.values() if one]
        return found

    # -- steps --------------------------------------------------------------------------------

    def create(self, directory: int, name: str) -> int:
        self.nodes.append(FileNode())
        self.directory(directory).change({name: len(self.nodes) - 1})
        return len(self.nodes) - 1

    def make_directory(self, directory: int, name: str) -> int:
        """Make a directory, durable at once."""
        self.nodes.append(DirectoryNode())
        node = self.directory(directory)
        node.names[name] = node.durable[name] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def rename(self, directory: int, old: str, new: str) -> None:
        self.directory(directory).change({old: None, new: self.find(directory, old)})

    def link(self, directory: int, old: str, new: str) -> None:
        self.directory(directory).change({new: self.find(directory, old)})

    def remove(self, directory: int, name: str) -> None:
        self.find(directory, name)
        self.directory(directory).change({name: None})

    def write(self, number: int, offset: int, data: bytes, durable: bool) -> None:
        node = self.file(number)
        _put(node.data, offset, data)
        if durable:
            _put(node.durable, offset, data)
        else:
            node.pending.append((offset, data))

    def finish_write(self, number: int, offset: int, data: bytes) -> None:
        """Make a write durable that was not when it began."""
        node = self.file(number)
        if (offset, data) in node.pending:
            node.pending.remove((offset, data))
        _put(node.durable, offset, data)

    def resize(self, number: int, size: int) -> None:
        node = self.file(number)
        _resize(node.data, size)
        node.pending.append((size, None))

    def sync(self, number: int) -> None:
        self.nodes[number].sync()

    def rot(self, number: int, offset: int, mask: int) -> None:
        """Flip bits of a durable byte."""
        node = self.file(number)
        node.durable[offset] ^= mask
        node.data[offset] ^= mask


def _rename(names: dict[str, int], changes: dict[str, int | None]) -> None:
    for name, number in changes.items():
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number


def _resize(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


def _put(data: bytearray, offset: int, piece: bytes) -> None:
    if offset > len(data):
        _resize(data, offset)
    data[offset : offset + len(piece)] = piece


def _tear(data: bytearray, offset: int, piece: bytes, choose: Choose) -> None:
    """Apply none of a write, all, a prefix, or random sectors."""
    how = choose(4)
    if how == 0:
        return
    bounds = [
        offset,
        *range(offset - offset % SECTOR_BYTES + SECTOR_BYTES, offset + len(piece), 512),
    ]
    whole = len(bounds) if how != 2 else choose(len(bounds) + 1)
    for i, start in enumerate(bounds[:whole]):
        stop = bounds[i + 1] if i + 1 < len(bounds) else offset + len(piece)
        if how != 3 or choose(2):
            _put(data, start, piece[start - offset : stop - offset])
