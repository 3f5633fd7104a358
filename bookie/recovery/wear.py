"""A note beside an index that it is worn: found while the bookie runs, mended at the next start.

An index that has rotted answers some questions and refuses others, each with `Corrupted`. It cannot
be rebuilt under those who use it, so the bookie goes on, says so once in the log, and leaves the
note.

Invariant: the note goes with the index, when that is thrown away to be rebuilt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from magnetar.bookie.server.directories import write_whole

FILE: Final = "WORN"


def note(index: Path, sentence: str) -> None:
    """Durable on return."""
    write_whole(index / FILE, sentence.encode())


def reason(index: Path) -> str:
    """What a note says; nothing if there is none."""
    try:
        return (index / FILE).read_text(errors="replace") or "the index is worn"
    except FileNotFoundError:
        return ""
