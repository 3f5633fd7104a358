"""The list of journals that must exist, with their sizes: shows a lost, cut or zeroed one.

    inventory    hex id | space | bytes | LF, for each journal | CRC32C of that, hex | LF

A journal is listed before anything but its header is written into it, and struck before it is
retired. So a listed journal exists with at least the listed size and its header, or was lost. An
unlisted journal may exist.

The file is ours; Apache's bookies ignore it. If it is missing or damaged, journals are not checked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.server.small_files import read_whole, size_of, write_whole
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.ports.disk import Directory

log = logging.getLogger(__name__)

FILE: Final = "inventory"


def encode(sizes: Mapping[int, int]) -> bytes:
    text = b"".join(b"%x %d\n" % (journal_id, sizes[journal_id]) for journal_id in sorted(sizes))
    return text + b"%08x\n" % crc32c(text)


def decode(data: bytes) -> dict[int, int]:
    """Parse the list; ValueError if it is damaged."""
    lines = data.split(b"\n")
    pairs = [line.split(b" ") for line in lines[:-2]]
    sizes = {int(journal_id, 16): int(size) for journal_id, size in pairs}
    if encode(sizes) != data:
        raise ValueError("it does not have its checksum")
    return sizes


def write(directory: Directory, sizes: Mapping[int, int]) -> None:
    """Replace the list. Durable on return."""
    write_whole(directory, FILE, encode(sizes))


def missing(directory: Directory, first_id: int) -> str:
    """What is wrong with the journals from `first_id` on, as a sentence; empty if nothing is."""
    try:
        sizes = decode(read_whole(directory, FILE))
    except FileNotFoundError:
        return ""
    except ValueError as error:
        path = f"{directory.path}/{FILE}"
        log.warning("%s is damaged: %s; journals are taken as they are", path, error)
        return ""
    for journal_id, size in sizes.items():
        name = journal_format.file_name(journal_id)
        if journal_id < first_id:
            continue
        try:
            found = size_of(directory, name)
        except FileNotFoundError:
            return f"{directory.path}/{name} is missing"
        if found < size:
            return f"{directory.path}/{name} is cut short: it has {found} bytes of {size}"
        if not _has_header(directory, name):
            return f"{directory.path}/{name} has lost its beginning: zeros stand there"
    return ""


def _has_header(directory: Directory, name: str) -> bool:
    """Whether a journal begins with anything; it had its header before it was listed."""
    file = directory.open(name)
    try:
        return any(file.pread(journal_format.HEADER_BYTES, 0))
    finally:
        file.close()
