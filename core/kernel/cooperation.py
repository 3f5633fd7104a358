"""Long work on the one loop, in steps that let other tasks have their turn.

    async for topic in Cooperative(request.topics):
        described.append(await describe(topic))

What the body awaits is mostly ready, so without this the task would not yield until the end of its
list; and the client chooses how long that list is.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

import trio

Item = TypeVar("Item")
Result = TypeVar("Result")

WORK_SECONDS: Final = 0.005
"""A task works so long before it rests. Each of several such tasks has its turn."""


class Cooperative(Generic[Item]):
    """The items in order, with a rest after `WORK_SECONDS` or `items_max` items."""

    __slots__ = ("_items", "_items_max", "_left", "_until")

    def __init__(self, items: Iterable[Item], items_max: int = sys.maxsize) -> None:
        self._items = iter(items)
        self._items_max = self._left = items_max
        self._until = trio.current_time() + WORK_SECONDS

    def __aiter__(self) -> Cooperative[Item]:
        return self

    async def __anext__(self) -> Item:
        if not self._left or trio.current_time() >= self._until:
            await trio.lowlevel.checkpoint()
            self._until = trio.current_time() + WORK_SECONDS
            self._left = self._items_max
        self._left -= 1
        for item in self._items:
            return item
        raise StopAsyncIteration


class ListConnection(Protocol):
    """What a connection says of the responses that it has not sent yet."""

    @property
    def congested(self) -> bool: ...
    def share(self) -> int: ...


class ListClient(Protocol):
    """A client that asks for a long list."""

    gone: bool

    @property
    def connection(self) -> ListConnection: ...


class ListLock:
    """Held while a long list is made: one at a time, for all the connections of a front.

    A list takes several times the memory of its response. None is made for a client that has not
    taken the responses before it, nor while too much is to be sent to others.
    """

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = trio.Lock()

    async def make(
        self,
        client: ListClient,
        relief: Callable[[], Callable[[], Awaitable[object]]],
        make: Callable[[], Awaitable[Result]],
    ) -> Result | None:
        """The list, or None for a client that leaves first.

        `relief` gives what waits until the client takes something or leaves. It is called before
        the client is looked at, so that what happens in between ends the wait.
        """
        while not client.gone:
            relieved = relief()
            async with self.lock:
                if not client.connection.congested and client.connection.share():
                    return await make()
            await relieved()
        return None
