r"""Apache's cookie: the owner of a directory, in its file VERSION (`Cookie.java`). Pure.

    5
    bookieHost: "embedded"
    journalDir: "journal"
    ledgerDirs: "1\tledgers"
    instanceId: "..."

Directories below the bookie's root are named relative to it, so that the root can be moved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

VERSION_FILE: Final = "VERSION"
LAYOUT: Final = 5
LAYOUT_OLDEST: Final = 4
"""The first layout with named fields; layout 3 has plain lines (`Cookie.java` of 4.18)."""
_FIELD = re.compile(r'(\w+): "((?:[^"\\]|\\.)*)"')
_ESCAPES: Final = {"\\t": "\t", "\\n": "\n", '\\"': '"', "\\\\": "\\"}


class Cookie(Struct, frozen=True):
    r"""The owner of a directory."""

    bookie_id: str
    journal_directory: str
    ledger_directories: str
    instance_id: str
    index_directories: str = ""
    """Empty if the indexes stand with the ledgers."""

    @property
    def ledgers(self) -> list[str]:
        """The directories of ledgers."""
        return self.ledger_directories.split("\t")[1:]

    @property
    def paths(self) -> list[str]:
        """All directories that it names; Apache's bookies may have several for journals."""
        indexes = self.index_directories.split("\t")[1:]
        return [*self.journal_directory.split(","), *self.ledgers, *indexes]

    def encode(self) -> str:
        fields = [
            ("bookieHost", self.bookie_id),
            ("journalDir", self.journal_directory),
            ("ledgerDirs", self.ledger_directories),
            ("instanceId", self.instance_id),
        ]
        if self.index_directories:
            fields.append(("indexDirs", self.index_directories))
        return f"{LAYOUT}\n" + "".join(f'{name}: "{_escape(value)}"\n' for name, value in fields)


def directories(paths: Sequence[str]) -> str:
    """Several directories, as the fields for ledgers and indexes have them."""
    return "\t".join((str(len(paths)), *paths))


def _escape(value: str) -> str:
    for escaped, plain in reversed(_ESCAPES.items()):
        value = value.replace(plain, escaped)
    return value


def decode(text: str) -> Cookie:
    """Parse a cookie; ValueError if it is none, or of an unknown layout."""
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
            fields.get("instanceId", ""),  # optional in CookieFormat (Cookie.java)
            fields.get("indexDirs", ""),
        )
    except KeyError as missing:
        raise ValueError(f"it lacks {missing}") from None


def of_directories(
    bookie_id: str, journal: str, ledgers: Sequence[str], instance_id: str
) -> Cookie:
    """The cookie of a bookie with one journal directory, and its indexes with the ledgers."""
    return Cookie(bookie_id, journal, directories(ledgers), instance_id)
