"""The cookies in a bookie's directories: found, written, taken back. All block: for a thread."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.bookie.cluster.handshake import CookiePlace
from magnetar.bookie.format import cookie as cookies
from magnetar.bookie.format.cookie import VERSION_FILE, Cookie
from magnetar.bookie.server.directories import Directories
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.disk import Directory

NO_DATA: Final = frozenset({VERSION_FILE, f"{VERSION_FILE}.new"})


class FoundPlace(Struct, frozen=True):
    """A directory with a cookie, or for one."""

    directory: Directory
    described: CookiePlace


def found_in(directories: Directories) -> list[FoundPlace]:
    """What is in the directories."""
    journal, ledgers = directories.names
    return [
        _describe(directory, name)
        for directory, name in zip(directories.all, (journal, *ledgers), strict=True)
    ]


def _describe(directory: Directory, cookie_name: str) -> FoundPlace:
    names = set(directory.names())
    found = None
    if VERSION_FILE in names:
        try:
            found = cookies.decode(read_whole(directory, VERSION_FILE).decode())
        except ValueError as error:
            raise StorageFailed(
                f"{directory.path}/{VERSION_FILE}: {error}. Is it the right disk? If it is, and "
                f"the file is damaged, copy {VERSION_FILE} from another directory of this bookie"
            ) from None
    has_data = not names <= NO_DATA
    return FoundPlace(directory, CookiePlace(directory.path, cookie_name, found, has_data))


def stamp(places: list[FoundPlace], ours: Cookie) -> None:
    """Write the cookie into all directories."""
    for place in places:
        write_whole(place.directory, VERSION_FILE, ours.encode().encode())


def restore(places: list[FoundPlace]) -> None:
    """Undo that."""
    for place in places:
        if place.described.cookie is None:
            place.directory.remove(VERSION_FILE)
            place.directory.sync()
        else:
            data = place.described.cookie.encode().encode()
            write_whole(place.directory, VERSION_FILE, data)
