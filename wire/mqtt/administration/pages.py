"""Pages of long lists of names, in their order.

Names come in any order, and nothing is kept between two pages. So each page looks at all names, and
keeps the first of those after the last page's end; a name costs 0.2 us. A page has fewer names than
requested if they are long: clients choose names of up to 64 KiB.

Invariant: a name that is there all the time is on exactly one page.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

import trio

NAMES_PER_TURN: Final = 2_000
"""Names that are looked at before other tasks run: a millisecond."""
PAGE_CHARACTERS_MAX: Final = 1_000_000
"""Of all names of a page; one is always on it."""


class PageSelection:
    """The first names after one, of all that are offered."""

    def __init__(self, after: str, limit: int) -> None:
        self._after = after
        self._limit = limit
        self._kept: list[str] = []
        self._characters = 0
        self._bound: str | None = None
        """Names behind it are on later pages; it is the first of those, or was."""

    def offer(self, name: str) -> None:
        if name > self._after and (self._bound is None or name < self._bound):
            self._kept.append(name)
            self._characters += len(name)
            many = len(self._kept) > 2 * self._limit + 1
            if many or self._characters > 2 * PAGE_CHARACTERS_MAX:
                self._cut()

    def _cut(self) -> None:
        """Keep the names of the page, and the one behind it."""
        kept, size = self._kept, 0
        kept.sort()
        for place, name in enumerate(kept):
            size += len(name)
            if place == self._limit or (place and size > PAGE_CHARACTERS_MAX):
                del kept[place + 1 :]
                self._bound = name
                break
        self._characters = size

    def page(self) -> tuple[list[str], str | None]:
        """The names, and the one after which the list goes on; None at its end."""
        self._cut()
        if self._bound is None:
            return self._kept, None
        page = self._kept[:-1]
        return page, page[-1]


async def page_of(
    names: Iterable[str | None], after: str, limit: int
) -> tuple[list[str], str | None]:
    """The page of names that are in memory; None is no name, but a step of a search."""
    selection, rest = PageSelection(after, limit), iter(names)
    while turn := list(islice(rest, NAMES_PER_TURN)):
        for name in turn:
            if name is not None:
                selection.offer(name)
        await trio.lowlevel.checkpoint()
    return selection.page()
