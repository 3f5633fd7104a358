"""Pages that take much memory, made for all who ask for them.

One page is made at a time. Who asks while one is being made gets the next one, which all get who
ask until that is begun: so a page is never older than the question, and a hundred questions at once
cost two pages. A page lives as long as somebody has not received it. If those that live take more
than `bytes_max`, nobody makes another one: the newest of them is sent, as old as it is, until
clients have received the others or are closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from weakref import WeakSet, ref

import trio


class SharedPage:
    """A page in pieces."""

    __slots__ = ("__weakref__", "pieces", "size")

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))

    async def sent(self) -> AsyncIterator[bytes]:
        """The pieces, each in a turn of its own."""
        for piece in self.pieces:
            yield piece
            await trio.lowlevel.checkpoint()


class _Next:
    """The page that is going to be made, and those who wait for it."""

    __slots__ = ("made", "page")

    def __init__(self) -> None:
        self.made = trio.Event()
        self.page: SharedPage | None = None
        """None, too, if making it failed."""


class SharedPages:
    """See the module's docstring."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._making = trio.Lock()
        self._next: _Next | None = None
        self._alive: WeakSet[SharedPage] = WeakSet()
        self._newest: ref[SharedPage] | None = None

    @property
    def alive_bytes(self) -> int:
        """What the pages that somebody has not received take."""
        return sum(page.size for page in self._alive)

    async def page(self, make: Callable[[], AsyncIterator[bytes]]) -> SharedPage:
        """A page that is made after this call, as long as there is memory."""
        while True:
            newest = self._newest() if self._newest is not None else None
            if newest is not None and self.alive_bytes > self._bytes_max:
                return newest
            found = self._next
            if found is None:
                return await self._made(make)
            await found.made.wait()
            if found.page is not None:
                return found.page

    async def _made(self, make: Callable[[], AsyncIterator[bytes]]) -> SharedPage:
        own = self._next = _Next()
        try:
            async with self._making:
                self._next = None
                page = own.page = SharedPage([piece async for piece in make()])
                self._alive.add(page)
                self._newest = ref(page)
                return page
        finally:
            if self._next is own:  # cancelled before its turn
                self._next = None
            own.made.set()
