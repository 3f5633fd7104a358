"""What a dump consists of: the parts of a file in their order, each with its place. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from magnetar.bookie.dump import layouts
from magnetar.core.kernel.checksum import crc32c

if TYPE_CHECKING:
    from mmap import mmap

    Data = bytes | mmap
    """A file, of which slices are taken."""

HEADER_BYTES: Final = 32
CRC32C_BYTES: Final = 4


class HeaderPart(Struct, frozen=True, tag="header", tag_field="part"):
    """The beginning of a file."""

    version: int
    map_offset: int | None = None
    """Where an entry log says that its ledgers map is; 0 if it was not finished."""
    ledgers: int | None = None


class EntryPart(Struct, frozen=True, tag="entry", tag_field="part"):
    """An entry; its offset is that of its length."""

    offset: int
    ledger: int
    entry: int
    last_confirmed: int
    length: int
    """Bytes of payload in the ledger up to this entry, says its writer."""
    size: int
    """Bytes of the entry here, with its header and its digest."""
    crc32c: bool
    """Whether it has a CRC32C, and the right one; else it has another digest, or is damaged."""


def entry_at(offset: int, body: bytes) -> EntryPart:
    """The entry with these bytes, of which there are enough (`ENTRY_BYTES_MIN`)."""
    head = layouts.ENTRY.parse(body)
    return EntryPart(
        offset,
        head.ledger,
        head.entry,
        head.last_confirmed,
        head.length,
        len(body),
        has_crc32c(body),
    )


class NotePart(Struct, frozen=True, tag="note", tag_field="part"):
    """A record of a journal that is not an entry."""

    offset: int
    ledger: int
    kind: str
    value: str
    """In hexadecimal."""


class PaddingPart(Struct, frozen=True, tag="padding", tag_field="part"):
    """The end of a group of a journal."""

    offset: int
    size: int
    seal: str
    """`intact`, `broken`, or nothing: Apache's bookies, and embedded ones, do not seal."""


class LedgersMap(Struct, frozen=True, tag="ledgers map", tag_field="part"):
    """A part of the map at the end of an entry log: bytes by ledger."""

    offset: int
    ledgers: dict[int, int]


class Damage(Struct, frozen=True, tag="damage", tag_field="part"):
    """Bytes without a meaning, up to where the dump goes on."""

    offset: int
    end: int
    what: str


Part = HeaderPart | EntryPart | NotePart | PaddingPart | LedgersMap | Damage


def has_crc32c(entry: bytes) -> bool:
    """Whether the entry has a CRC32C, and the right one."""
    body_at = HEADER_BYTES + CRC32C_BYTES
    if len(entry) < body_at:
        return False
    computed: int = crc32c(entry[body_at:], crc32c(entry[:HEADER_BYTES]))
    return computed == int.from_bytes(entry[HEADER_BYTES:body_at], "big")


class Summary(Struct, frozen=True, tag="summary", tag_field="part"):
    """What a file had altogether."""

    entries: int
    ledgers: int
    damaged_entries: int
    """Entries with a wrong digest: without a CRC32C, in a ledger that has entries with one."""
    damages: int
    """Places without a meaning."""

    @property
    def intact(self) -> bool:
        return not self.damaged_entries and not self.damages


class Tally:
    """Counts the parts of a file."""

    def __init__(self) -> None:
        self._with: dict[int, int] = {}
        self._without: dict[int, int] = {}
        self._damages = 0

    def count(self, part: Part) -> None:
        match part:
            case EntryPart(ledger=ledger, crc32c=crc32c):
                found = self._with if crc32c else self._without
                found[ledger] = found.get(ledger, 0) + 1
            case Damage():
                self._damages += 1
            case _:
                pass

    def summary(self) -> Summary:
        entries = sum(self._with.values()) + sum(self._without.values())
        damaged = sum(n for ledger, n in self._without.items() if ledger in self._with)
        return Summary(entries, len({*self._with, *self._without}), damaged, self._damages)
