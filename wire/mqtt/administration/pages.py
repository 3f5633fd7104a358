"""Pages of long lists of names, in their order.

Names come in any order, and nothing is kept between two pages. So each page looks at all names, and
keeps the first of those after the last page's end; a name costs 0.2 us.

Invariant: a name that is there all the time is on exactly one page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from magnetar.core.kernel.cooperation import Cooperative

NAMES_PER_TURN: Final = 5_000
"""Names that are looked at before other tasks run: a millisecond."""


async def page_of(names: Iterable[str], after: str, limit: int) -> tuple[list[str], str | None]:
    """The next names after one, and the name after which the list goes on; None at its end."""
    kept: list[str] = []
    bound: str | None = None
    """Names from here on are on later pages."""
    async for name in Cooperative(names, NAMES_PER_TURN):
        if name > after and (bound is None or name < bound):
            kept.append(name)
            if len(kept) > 2 * limit + 1:
                kept = sorted(kept)[: limit + 1]
                bound = kept[-1]
    kept.sort()
    return kept[:limit], kept[limit - 1] if len(kept) > limit else None
