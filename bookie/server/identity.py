"""The check that directories are this bookie's: each has its cookie (`format/cookie.py`).

Invariant: a bookie starts only if every directory has this bookie's cookie, or if none has a cookie
and all are empty. An empty disk under the name of a known bookie would answer "no such entry" for
entries that it had acknowledged. Apache: `LegacyCookieValidation.checkCookies` of 4.18.
"""

from __future__ import annotations

from magnetar.bookie.format.cookie import VERSION_FILE, Cookie, decode
from magnetar.bookie.server.directories import LAST_MARK, Directories
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.journal.files import journals
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.disk import Directory


def is_empty(directories: Directories) -> bool:
    """Whether there is no cookie and no file that a bookie has stored."""
    return not (
        any(map(_has_cookie, directories.all))
        or journals(directories.journal)
        or log_ids(directories.logs)
    )


def _has_cookie(place: Directory) -> bool:
    return VERSION_FILE in place.names()


def _has_started(directories: Directories) -> bool:
    """Whether there is anything that a bookie writes after its cookies."""
    return bool(
        journals(directories.journal)
        or LAST_MARK in directories.ledgers.names()
        or log_ids(directories.logs)
    )


def check(directories: Directories, cookie: Cookie) -> None:
    """Refuse foreign, newer or half-lost directories; write the cookie into new ones."""
    places = directories.all
    missing = [place for place in places if not _has_cookie(place)]
    if len(missing) == len(places) and not is_empty(directories):
        raise StorageFailed(
            f"{directories.root.path} holds a bookie's files but no cookie: restore "
            f"{VERSION_FILE} from a backup"
        )
    for place in places:
        if place not in missing:
            _compare(directories, place, cookie)
    if missing and _has_started(directories):
        raise StorageFailed(
            f"{missing[0].path} has lost its cookie: is it the right disk? If it is, copy VERSION "
            f"from {_other(directories, missing[0]).path}"
        )
    # New ones, or those of a first start that was cut off between writing the cookies.
    for place in reversed(missing):
        write_whole(place, VERSION_FILE, cookie.encode().encode())


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
    if (found.bookie_id, found.instance_id) != (cookie.bookie_id, cookie.instance_id):
        raise StorageFailed(
            f"{path} belongs to another bookie, {_owner(found)}; this one is {_owner(cookie)}. "
            f"{advice}"
        )
    if found != cookie:
        raise StorageFailed(
            f"{path} is of a bookie with other directories: {', '.join(found.paths)}; this one has "
            f"{', '.join(cookie.paths)}. Name the same ones as before, and in their order "
            "(--journal-dir, --ledger-dirs); new and empty ones are taken with "
            "--allow-storage-expansion"
        )


def _owner(cookie: Cookie) -> str:
    return f"{cookie.bookie_id} in the cluster {cookie.instance_id or 'without an instance'}"


def _other(directories: Directories, place: Directory) -> Directory:
    return directories.ledgers if place is directories.journal else directories.journal
