"""The check that directories are this bookie's: each has its cookie (`format/cookie.py`).

Invariant: a bookie starts only if every directory has this bookie's cookie, or if none has a cookie
and all are empty. An empty disk under the name of a known bookie would answer "no such entry" for
entries that it had acknowledged. Apache: `LegacyCookieValidation.checkCookies` of 4.18.
"""

from __future__ import annotations

from magnetar.bookie.format.cookie import VERSION_FILE, Cookie, decode
from magnetar.bookie.server.directories import LAST_MARK, Directories
from magnetar.bookie.server.journal.files import journals
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.disk import Directory


def is_empty(directories: Directories) -> bool:
    """Whether there is no cookie and no file that a bookie has stored."""
    return not (
        any(map(_has_cookie, (directories.journal, directories.ledgers)))
        or journals(directories.journal)
        or any(name.endswith(".log") for name in directories.ledgers.names())
    )


def _has_cookie(place: Directory) -> bool:
    return VERSION_FILE in place.names()


def check(directories: Directories, cookie: Cookie) -> None:
    """Refuse foreign, newer or half-lost directories; write the cookie into new ones."""
    places = (directories.journal, directories.ledgers)
    missing = [place for place in places if not _has_cookie(place)]
    if len(missing) == len(places):
        if not is_empty(directories):
            raise StorageFailed(
                f"{directories.root.path} holds a bookie's files but no cookie: restore "
                f"{VERSION_FILE} from a backup"
            )
        for place in reversed(places):
            write_whole(place, VERSION_FILE, cookie.encode().encode())
        return
    if missing == [directories.journal] and not (
        journals(directories.journal) or LAST_MARK in directories.ledgers.names()
    ):
        # A first start was cut off between writing the two cookies.
        write_whole(directories.journal, VERSION_FILE, cookie.encode().encode())
        missing = []
    if missing:
        raise StorageFailed(
            f"{missing[0].path} has lost its cookie: is it the right disk? If it is, copy VERSION "
            f"from {_other(directories, missing[0]).path}"
        )
    for place in places:
        _compare(directories, place, cookie)


def _compare(directories: Directories, place: Directory, cookie: Cookie) -> None:
    path = f"{place.path}/{VERSION_FILE}"
    advice = (
        "Is it the right disk? If it is, and the file is damaged, copy VERSION from "
        f"{_other(directories, place).path}"
    )
    try:
        found = decode(read_whole(place, VERSION_FILE).decode())
    except ValueError as error:
        raise StorageFailed(f"{path}: {error}. {advice}") from None
    if found != cookie:
        raise StorageFailed(
            f"{path} belongs to another bookie: {found}, this one is {cookie}. {advice}"
        )


def _other(directories: Directories, place: Directory) -> Directory:
    return directories.ledgers if place is directories.journal else directories.journal
