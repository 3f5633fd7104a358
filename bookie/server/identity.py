"""The check that a directory is this bookie's: every directory has its cookie (`format/cookie.py`).

Invariant: a bookie starts only where every directory has its own cookie, or where none has one and
nothing else is there either. An empty disk under a known name would deny entries it once had.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from magnetar.bookie.format.cookie import VERSION_FILE, Cookie, decode
from magnetar.bookie.server.directories import LAST_MARK, Directories, write_whole
from magnetar.bookie.server.journal.files import journals
from magnetar.core.errors import StorageFailed


def is_empty(directories: Directories) -> bool:
    """No cookie, and nothing that a bookie has stored."""
    places = (directories.journal, directories.ledgers)
    return not (
        any((place / VERSION_FILE).exists() for place in places)
        or journals(directories.journal)
        or any(directories.ledgers.glob("*.log"))
    )


def check(directories: Directories, wanted: Cookie) -> None:
    """Refuse foreign, newer or half-lost directories; write the cookie into new ones."""
    places = (directories.journal, directories.ledgers)
    missing = [place for place in places if not (place / VERSION_FILE).exists()]
    if len(missing) == len(places):
        if not is_empty(directories):
            raise StorageFailed(
                f"{directories.root} holds a bookie's files but no cookie: restore "
                f"{VERSION_FILE} from a backup"
            )
        for place in reversed(places):
            write_whole(place / VERSION_FILE, wanted.encode().encode())
        return
    if missing == [directories.journal] and not (
        journals(directories.journal) or (directories.ledgers / LAST_MARK).exists()
    ):
        # A first start that was cut short between the two cookies.
        write_whole(directories.journal / VERSION_FILE, wanted.encode().encode())
        missing = []
    if missing:
        (other,) = set(places).difference(missing)
        raise StorageFailed(
            f"{missing[0]} has lost its cookie: is it the right disk? If it is, copy VERSION from "
            f"{other}"
        )
    for place in places:
        path = place / VERSION_FILE
        try:
            found = decode(path.read_text())
        except ValueError as error:
            raise StorageFailed(f"{path}: {error}. {_other(path, places)}") from None
        if found != wanted:
            raise StorageFailed(
                f"{path} belongs to another bookie: {found}, this one is {wanted}. "
                f"{_other(path, places)}"
            )


def _other(path: Path, places: Sequence[Path]) -> str:
    (other,) = (place for place in places if place != path.parent)
    return f"Is it the right disk? If it is, and the file is damaged, copy VERSION from {other}"
