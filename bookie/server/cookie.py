r"""Who a directory belongs to: Apache's cookie, in the file VERSION of each directory.

    5
    bookieHost: "embedded"
    journalDir: "journal"
    ledgerDirs: "1\tledgers"
    instanceId: "..."

Invariant: a bookie starts only where every directory has its own cookie, or where none has one and
nothing else is there either. An empty disk under a known name would deny entries it once had.

The embedded bookie names its directories relative to its root, so that all of it may be moved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from magnetar.bookie.server.directories import LAST_MARK, Directories, write_whole
from magnetar.bookie.server.journal.files import journals
from magnetar.core.errors import StorageFailed

VERSION_FILE: Final = "VERSION"
LAYOUT: Final = 5
LAYOUT_OLDEST: Final = 3
_FIELD = re.compile(r'(\w+): "((?:[^"\\]|\\.)*)"')
_ESCAPES: Final = {"\\t": "\t", "\\n": "\n", '\\"': '"', "\\\\": "\\"}


class Cookie(Struct, frozen=True):
    r"""Whose directory it is."""

    bookie_id: str
    journal_directory: str
    ledger_directories: str
    instance_id: str

    def encode(self) -> str:
        fields = (
            ("bookieHost", self.bookie_id),
            ("journalDir", self.journal_directory),
            ("ledgerDirs", self.ledger_directories),
            ("instanceId", self.instance_id),
        )
        return f"{LAYOUT}\n" + "".join(f'{name}: "{_escape(value)}"\n' for name, value in fields)


def _escape(value: str) -> str:
    for escaped, plain in reversed(_ESCAPES.items()):
        value = value.replace(plain, escaped)
    return value


def decode(text: str) -> Cookie:
    """ValueError if this is no cookie that we can read."""
    first, _, rest = text.partition("\n")
    if not first.isdigit():
        raise ValueError("it is no bookie's")
    if not LAYOUT_OLDEST <= int(first) <= LAYOUT:
        raise ValueError(f"its layout is {first}, this program knows {LAYOUT_OLDEST} to {LAYOUT}")
    fields = {
        name: re.sub(r"\\.", lambda match: _ESCAPES.get(match[0], match[0]), value)
        for name, value in _FIELD.findall(rest)
    }
    try:
        return Cookie(
            fields["bookieHost"],
            fields["journalDir"],
            fields["ledgerDirs"],
            fields.get("instanceId", ""),
        )
    except KeyError as missing:
        raise ValueError(f"it lacks {missing}") from None


def embedded(bookie_id: str, instance_id: str) -> Cookie:
    return Cookie(bookie_id, "journal", "1\tledgers", instance_id)


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
