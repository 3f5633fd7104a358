"""A note in an index's directory that it is worn: damage found while the bookie runs.

A worn index answers some look-ups and raises `Corrupted` for others. It cannot be rebuilt while it
is in use. So the bookie goes on, logs the damage once, and leaves the note; the next start rebuilds
the index.

Invariant: the note is removed with the index, when that is discarded to be rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.ports.disk import Directory

log = logging.getLogger(__name__)

FILE: Final = "WORN"


def note(index: Directory, sentence: str) -> None:
    """Write the note. Durable on return."""
    write_whole(index, FILE, sentence.encode())


def reason(parent: Directory, name: str) -> str:
    """The text of an index's note; empty if there is none."""
    if name not in parent.names():
        return ""
    try:
        found = read_whole(parent.directory(name), FILE)
    except FileNotFoundError:
        return ""
    return found.decode(errors="replace") or "the index is worn"


def reporter(index: Directory) -> Callable[[str], None]:
    """A callback for damage: the first call logs it and writes the note."""
    reported: list[str] = []

    def report(sentence: str) -> None:
        if reported:
            return
        reported.append(sentence)
        log.error("%s; what cannot be read is refused, and the next start rebuilds it", sentence)
        try:
            note(index, sentence)
        except OSError as error:
            log.error("and that could not be noted: %s", error)

    return report
