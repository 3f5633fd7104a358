"""What the store has seen of nodes, to judge a lost answer by. Pure, and bounded."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

PATHS_MAX: Final = 10_000
"""The oldest notes are dropped: then a lost answer may prove nothing, which is reported."""


class _Note(Struct, frozen=True):
    version: int
    digest: int
    """Python's hash of the bytes: equal bytes have equal ones, so a difference proves something."""
    created: int | None
    """The transaction that created the node, if known: another node in its place has another."""


class NodeMemory:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._notes: dict[str, _Note] = {}

    def note(self, path: str, version: int, value: bytes | None, created: int | None) -> None:
        """What a node has, as it was read or written."""
        before = self._notes.pop(path, None)
        if created is None and before is not None and version == before.version + 1:
            created = before.created
        self._notes[path] = _Note(version, hash(value), created)
        if len(self._notes) > PATHS_MAX:
            del self._notes[next(iter(self._notes))]

    def forget(self, path: str) -> None:
        self._notes.pop(path, None)

    def was_other(self, path: str, version: int, value: bytes | None) -> bool:
        """Whether the node certainly had other bytes at that version."""
        note = self._notes.get(path)
        return note is not None and note.version == version and note.digest != hash(value)

    def created(self, path: str, version: int) -> int | None:
        """The transaction that created the node which has that version; None if not known."""
        note = self._notes.get(path)
        return note.created if note is not None and note.version == version else None
