"""The metadata's commit log: a head, then commits, each chained to the one before. Pure.

    head    "MGNTMLOG" | u32 format 1 | u32 - | u64 generation | u64 commits before it
            | u64 bytes of the snapshot it goes on from, 0 if from nothing | u32 CRC32C of those
            | u32 chain before it | u32 CRC32C of all this
    commit  "MGCM" | u32 CRC32C of what follows | u32 chain: the CRC of the commit before
            | u32 n | u64 number | n bytes of changes (`changes.py`) | zeros to a multiple of 8
    behind  zeros, as far as the file has been made ready

A commit is valid if its checksum is right, it names the checksum of the commit before, and its
number is the next one. So remains of an earlier attempt behind the end are never taken for a
commit, nor is a commit of another log. The log cannot tell its own end from damage: the end mark
does that (`end_mark.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

import msgspec

from magnetar.core.kernel.checksum import crc32c

FORMAT: Final = 1
MAGIC: Final = b"MGNTMLOG"
COMMIT_MAGIC: Final = b"MGCM"
ALIGNMENT_BYTES: Final = 8

_head = Struct(">8sIIQQQII")
_crc = Struct(">I")
_commit = Struct(">4sIIIQ")
HEAD_BYTES: Final = 64
_CHECKED_FROM: Final = 8
"""The offset in a commit from which its checksum counts: behind magic and checksum."""


class Head(msgspec.Struct, frozen=True):
    """The head of a log: the snapshot and the commit that it continues."""

    generation: int
    number: int
    """The number of the last commit before the log."""
    chain: int
    snapshot_bytes: int
    snapshot_crc: int


class Commit(msgspec.Struct, frozen=True):
    """One commit of a log, and the offset of the next."""

    number: int
    chain: int
    """Its checksum, which the next commit names."""
    body: bytes
    end: int


def encode_head(head: Head) -> bytes:
    packed = _head.pack(
        MAGIC,
        FORMAT,
        0,
        head.generation,
        head.number,
        head.snapshot_bytes,
        head.snapshot_crc,
        head.chain,
    )
    return (packed + _crc.pack(crc32c(packed))).ljust(HEAD_BYTES, b"\0")


def decode_head(data: bytes) -> Head:
    """Parse the head; ValueError if this is no log of this format."""
    if len(data) < HEAD_BYTES:
        raise ValueError("it ends inside its head")
    packed = data[: _head.size]
    if _crc.unpack_from(data, _head.size)[0] != crc32c(packed):
        raise ValueError("its head is damaged")
    magic, version, _, generation, number, size, crc, chain = _head.unpack(packed)
    if magic != MAGIC or version > FORMAT:
        raise ValueError(f"it is of format {version}, this version reads up to {FORMAT}")
    return Head(generation, number, chain, size, crc)


def encode_commit(number: int, chain: int, body: bytes) -> bytes:
    packed = _commit.pack(COMMIT_MAGIC, 0, chain, len(body), number) + body
    data = COMMIT_MAGIC + _crc.pack(crc32c(packed[_CHECKED_FROM:])) + packed[_CHECKED_FROM:]
    return data + bytes(-len(data) % ALIGNMENT_BYTES)


def chain_of(commit: bytes) -> int:
    """The checksum by which the next commit names this one."""
    return int(_crc.unpack_from(commit, len(COMMIT_MAGIC))[0])


def commits(data: bytes, head: Head) -> Iterator[Commit]:
    """Commits in order, up to the first that is incomplete or does not follow."""
    number, chain, position = head.number, head.chain, HEAD_BYTES
    while (commit := commit_at(data, position)) is not None:
        if commit.number != number + 1 or named_before(data, position) != chain:
            return
        yield commit
        number, chain, position = commit.number, commit.chain, commit.end


def commit_at(data: bytes, position: int) -> Commit | None:
    """The commit at an offset, if there is one; its predecessor is not checked."""
    if position + _commit.size > len(data):
        return None
    magic, crc, _, size, number = _commit.unpack_from(data, position)
    stop = position + _commit.size + size
    if magic != COMMIT_MAGIC or stop > len(data):
        return None
    if crc32c(data[position + _CHECKED_FROM : stop]) != crc:
        return None
    end = stop + -stop % ALIGNMENT_BYTES
    return Commit(number, crc, data[position + _commit.size : stop], end)


def named_before(data: bytes, position: int) -> int:
    """The checksum of its predecessor that the commit at an offset names."""
    return int(_commit.unpack_from(data, position)[2])


def salvage(data: bytes, start: int, number: int) -> Iterator[Commit]:
    """Commits above `number` behind damage, for a repair."""
    position = start
    while (position := data.find(COMMIT_MAGIC, position)) >= 0:
        commit = commit_at(data, position)
        if commit is not None and commit.number > number:
            yield commit
            number, position = commit.number, commit.end
        else:
            position += 1
