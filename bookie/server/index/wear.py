"""A note beside an index that it is worn: rot that shows while the bookie runs.

A worn index answers some questions and refuses others, each with `Corrupted`. It cannot be rebuilt
while it is in use, so the bookie goes on, logs the matter once, and leaves the note for the next
start, which rebuilds the index.

Invariant: the note goes with the index, when that is thrown away to be rebuilt.
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
    """Durable on return."""
    write_whole(index, FILE, sentence.encode())


def reason(parent: Directory, name: str) -> str:
    """What the note of an index says; nothing if there is none."""
    if name not in parent.names():
        return ""
    try:
        found = read_whole(parent.directory(name), FILE)
    except FileNotFoundError:
        return ""
    return found.decode(errors="replace") or "the index is worn"


def reporter(index: Directory) -> Callable[[str], None]:
    """What a database calls when rot shows: the first call is logged and leaves a note."""
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
