"""Which journals there should be, and how long: so that one that is gone or cut does not go unseen.

    inventory    hex id | space | bytes | LF, for each journal | CRC32C of that, hex | LF

A journal is listed before anything is written into it, and struck before it is given up. So each
that is listed is there, as long as it says, or was lost. One may be there that is not listed.

It is our own file beside Apache's. Without it, or if it is damaged, journals are taken as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.server.directories import write_whole
from magnetar.core.checksum import crc32c

log = logging.getLogger(__name__)

FILE: Final = "inventory"


def encode(sizes: Mapping[int, int]) -> bytes:
    text = b"".join(b"%x %d\n" % (journal_id, sizes[journal_id]) for journal_id in sorted(sizes))
    return text + b"%08x\n" % crc32c(text)


def decode(data: bytes) -> dict[int, int]:
    """ValueError if it is not what `encode` made."""
    lines = data.split(b"\n")
    pairs = [line.split(b" ") for line in lines[:-2]]
    sizes = {int(journal_id, 16): int(size) for journal_id, size in pairs}
    if encode(sizes) != data:
        raise ValueError("it does not have its checksum")
    return sizes


def write(directory: Path, sizes: Mapping[int, int]) -> None:
    """Durable on return."""
    write_whole(directory / FILE, encode(sizes))


def missing(directory: Path, first_id: int) -> str:
    """What is wrong with the journals from `first_id` on, in a sentence; nothing if all is well."""
    try:
        sizes = decode((directory / FILE).read_bytes())
    except FileNotFoundError:
        return ""
    except ValueError as error:
        log.warning("%s is damaged: %s; journals are taken as they are", directory / FILE, error)
        return ""
    for journal_id, size in sizes.items():
        path = directory / journal_format.file_name(journal_id)
        if journal_id < first_id:
            continue
        if not path.exists():
            return f"{path} is missing"
        if path.stat().st_size < size:
            return f"{path} is cut short: it has {path.stat().st_size} bytes of {size}"
    return ""
