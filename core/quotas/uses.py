"""Who has used how much of a limit: bounded, whatever clients call themselves.

A client names itself in each request, without any right, and its use is still there when its
connection is gone. So names are kept short, and entries are few:

    a name      of more than `NAME_MAX` characters, or that is not ASCII (up to four bytes a
                character), counts under its digest. Which limit holds is decided by the name itself
    an entry    makes room, where there are `ENTRIES_MAX`: a tenth of them is forgotten, those that
                were not used for longest, but nobody who has to wait
    no room     everybody has to wait: then the newcomer's use is not remembered. The next search
                is a second later, since each looks at all entries

Invariants: at most `ENTRIES_MAX` entries; nobody is freed from a wait by others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from magnetar.core.quotas.limits import QuotaScope

ENTRIES_MAX: Final = 10_000
EVICTED: Final = 10
"""The part of the entries that is forgotten when there are too many."""
SEARCH_SECONDS: Final = 1.0
NAME_MAX: Final = 255

CountedName = str | bytes
"""A name, or the digest of one, which no name can be equal to."""
CountedScope = tuple[CountedName, CountedName, CountedName]


class _Limited(Protocol):
    def wait_seconds(self, now: float) -> float: ...


Place = TypeVar("Place")
Use = TypeVar("Use", bound=_Limited)


def counted(name: str) -> CountedName:
    """The name under which somebody's use is remembered."""
    if len(name) <= NAME_MAX and name.isascii():
        return name
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def counted_scope(scope: QuotaScope) -> CountedScope:
    """Likewise, of those who share a limit."""
    user, client, address = scope
    return counted(user), counted(client), counted(address)


class Uses(Generic[Place, Use]):
    """See the module's docstring."""

    __slots__ = ("_by_place", "_search_at", "_used_at")

    def __init__(self, used_at: Callable[[Use], float]) -> None:
        """`used_at` says when something was used last; of those that are equal, the order in which
        they were touched counts.
        """
        self._by_place: dict[Place, Use] = {}
        self._used_at = used_at
        self._search_at = 0.0

    def __len__(self) -> int:
        return len(self._by_place)

    def get(self, place: Place) -> Use | None:
        return self._by_place.get(place)

    def touch(self, place: Place) -> None:
        """It is used now."""
        self._by_place[place] = self._by_place.pop(place)

    def put(self, place: Place, use: Use, now: float) -> bool:
        """Remember a use, if there is room; whether others were forgotten for it."""
        forgotten = False
        if place not in self._by_place and len(self._by_place) >= ENTRIES_MAX:
            forgotten = self._make_room(now)
            if not forgotten:
                return False
        self._by_place[place] = use
        return forgotten

    def clear(self) -> None:
        self._by_place.clear()

    def _make_room(self, now: float) -> bool:
        if now < self._search_at:
            return False
        uses, used_at = self._by_place, self._used_at
        wanted = max(len(uses) // EVICTED, 1)
        free: list[Place] = []
        for place in sorted(uses, key=lambda each: used_at(uses[each])):
            if not uses[place].wait_seconds(now):
                free.append(place)
                if len(free) == wanted:
                    break
        if len(free) < wanted:
            self._search_at = now + SEARCH_SECONDS
            del free[(len(free) + 1) // 2 :]  # the newest were made for a request that goes on
        for place in free:
            del uses[place]
        return bool(free)
