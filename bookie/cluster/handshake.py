"""Whether a bookie may start on its directories: the rules of cookies. Pure.

The cookie in the metadata store and those in the directories are made together, once. If one is
missing later, a disk was lost, swapped or wiped; a bookie that started would answer "no such entry"
for entries that it had acknowledged, and recovery would cut ledgers short. So in doubt it does not
start, and nothing is repaired without the operator.

    store     directories                                 verdict
    cookie    all have one                                START
    cookie    some lack one                               refused; STAMP if `may_grow` and those
                                                          are new and empty
    none      none has data                               STAMP: a new bookie, or one whose first
                                                          start was cut off
    none      some have data                              refused

All cookies must be the one of this bookie, these directories and this cluster; with `may_grow` they
may name fewer directories, of which the first one of ledgers is the same. STAMP: write the cookie
into all directories first, then into the store, over the version that was read. Apache:
`LegacyCookieValidation.java` of 4.18, which also lets a bookie start anew if the directories
without a cookie are empty, whatever the others hold.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from msgspec import Struct

from magnetar.bookie.format.cookie import Cookie
from magnetar.core.kernel.errors import StorageFailed


class StartVerdict(enum.Enum):
    """See the module's docstring."""

    START = enum.auto()
    STAMP = enum.auto()


class CookiePlace(Struct, frozen=True):
    """A directory of the journal, of ledgers or of indexes, as it was found."""

    path: str
    name: str
    """Its name in cookies."""
    cookie: Cookie | None
    has_data: bool
    """Anything that a bookie writes, but for the cookie."""


def judge(
    ours: Cookie, stored: Cookie | None, places: Sequence[CookiePlace], *, may_grow: bool = False
) -> StartVerdict:
    """What to do, or `StorageFailed` with what the operator has to know."""
    if stored is not None:
        _compare(ours, stored, "the metadata store", may_grow=may_grow)
    for place in places:
        if place.cookie is not None:
            _compare(ours, place.cookie, place.path, may_grow=may_grow)
    if stored is None:
        return _judge_new(places)
    missing = [place for place in places if place.cookie is None]
    if missing and may_grow:
        _check_new(missing, [stored, *(p.cookie for p in places if p.cookie is not None)])
    elif missing:
        lost = len(missing) == len(places)
        raise StorageFailed(
            f"{_told(missing, 'lacks', 'lack')} the cookie that bookie {ours.bookie_id} has in the "
            f"metadata store: {_advice(ours.bookie_id, all_lost=lost)}"
        )
    return StartVerdict.START if stored == ours and not missing else StartVerdict.STAMP


def _advice(bookie_id: str, *, all_lost: bool) -> str:
    """What to do about directories without a cookie. The cluster forgets a bookie of which nothing
    is left; otherwise what is left has to go too.
    """
    anew = f"delete-cookie {bookie_id} --force" if all_lost else "format --force"
    grow = "" if all_lost else "A new and empty one is taken with --allow-storage-expansion. "
    return (
        f"is it the right disk? {grow}If data are lost, `magnetar bookie recover {bookie_id}` "
        f"copies the bookie's ledgers from others, and after `magnetar bookie {anew}` it begins "
        "anew, empty"
    )


def _judge_new(places: Sequence[CookiePlace]) -> StartVerdict:
    full = [place for place in places if place.has_data]
    if full:
        raise StorageFailed(
            f"{_told(full, 'holds', 'hold')} a bookie's data, and the metadata store has no cookie "
            "of it: is it the right cluster?"
        )
    return StartVerdict.STAMP


def _check_new(missing: Sequence[CookiePlace], cookies: Sequence[Cookie]) -> None:
    known = {path for cookie in cookies for path in cookie.paths}
    for place in missing:
        if place.has_data or place.name in known:
            raise StorageFailed(
                f"{place.path} is no new directory, and lacks its cookie: is it the right disk?"
            )


def _compare(ours: Cookie, found: Cookie, where: str, *, may_grow: bool) -> None:
    if found == ours:
        return
    if (found.bookie_id, found.instance_id) != (ours.bookie_id, ours.instance_id):
        raise StorageFailed(
            f"{where} has the cookie of bookie {found.bookie_id} in the cluster "
            f"{found.instance_id or 'without an instance'}, this one is {ours.bookie_id} in "
            f"{ours.instance_id or 'one without an instance'}"
        )
    if not (may_grow and _grows(found, ours)):
        advice = (
            "if one is new and empty, take it with --allow-storage-expansion"
            if not may_grow and _grows(found, ours)
            else "name the same ones as before, and in their order (--journal-dir, --ledger-dirs)"
        )
        raise StorageFailed(
            f"{where} has a cookie for other directories: {', '.join(found.paths)}; this bookie "
            f"has {', '.join(ours.paths)}: {advice}"
        )


def _grows(found: Cookie, ours: Cookie) -> bool:
    """Whether directories are added. The first one of ledgers stays: the indexes are in it."""
    more = set(found.paths) < set(ours.paths)
    return more and found.ledgers[:1] == ours.ledgers[:1]


def _told(places: Sequence[CookiePlace], one: str, several: str) -> str:
    """The directories, and the verb."""
    paths = ", ".join(place.path for place in places)
    return f"{paths} {one if len(places) == 1 else several}"
