"""Long work on the loop, in steps between which other tasks run.

    async for topic in Cooperative(request.topics):
        described.append(await describe(topic))

What the body awaits is mostly ready, so without this the task would not yield before the end of its
list, whose length the client chooses. Others do not wait longer if many tasks do such work: one of
them works in each round of the loop.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from typing import Final, Generic, Protocol, TypeVar

import trio

Item = TypeVar("Item")
Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)

WORK_SECONDS: Final = 0.005
"""How long a task works before it yields."""


class WorkTurns:
    """Of all tasks that rest from long work, each round of the loop has one go on, the one that has
    waited longest.

    Invariant: while tasks wait, one more is chosen, which goes on in the next round and chooses
    again.
    """

    __slots__ = ("_is_chosen", "_waiting")

    def __init__(self) -> None:
        self._is_chosen = False
        self._waiting = trio.lowlevel.ParkingLot()

    async def next(self) -> None:
        """Rest until it is this task's turn again, for at least one round."""
        if self._is_chosen:
            await self._waiting.park()
            self._choose()
            return
        self._is_chosen = True
        try:
            await trio.lowlevel.checkpoint()
        finally:
            self._choose()

    def _choose(self) -> None:
        self._is_chosen = bool(self._waiting.unpark())


TURNS: Final = trio.lowlevel.RunVar[WorkTurns]("turns")
"""Of this loop."""


async def rest() -> None:
    """Let others run, in the middle of long work."""
    try:
        turns = TURNS.get()
    except LookupError:
        turns = WorkTurns()
        TURNS.set(turns)
    await turns.next()


class Cooperative(Generic[Item]):
    """The items in order, with a rest after `seconds` or `items_max` items."""

    __slots__ = ("_items", "_items_max", "_left", "_seconds", "_until")

    def __init__(
        self, items: Iterable[Item], items_max: int = sys.maxsize, seconds: float = WORK_SECONDS
    ) -> None:
        self._items = iter(items)
        self._items_max = self._left = items_max
        self._seconds = seconds
        self._until = trio.current_time() + seconds

    def __aiter__(self) -> Cooperative[Item]:
        return self

    async def __anext__(self) -> Item:
        if not self._left or trio.current_time() >= self._until:
            await rest()
            self._until = trio.current_time() + self._seconds
            self._left = self._items_max
        self._left -= 1
        for item in self._items:
            return item
        raise StopAsyncIteration


class KeyedLocks(Generic[Key]):
    """One task at a time with each key. A lock is there for as long as somebody has it, or waits
    for it.
    """

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[Key, trio.Lock] = {}

    def __contains__(self, key: Key) -> bool:
        """Whether somebody has the turn."""
        return key in self._locks

    @asynccontextmanager
    async def at(self, key: Key) -> AsyncIterator[None]:
        """Have the turn with a key."""
        lock = self._locks.setdefault(key, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._locks.pop(key, None)


class ListConnection(Protocol):
    """A connection with responses that are not sent yet."""

    @property
    def congested(self) -> bool: ...
    def share(self) -> int: ...


class ListClient(Protocol):
    """A client that requests a long list."""

    gone: bool

    @property
    def connection(self) -> ListConnection: ...


class ListLock:
    """Held while a long list is built: one at a time, for all connections of a front.

    A list takes several times the memory of its response. None is built for a client that has not
    received earlier responses, nor while too much waits to be sent to others.
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
        """The list, or None if the client leaves before.

        `relief` returns a wait for the client to receive something or leave. It is called before
        the client's state is read, so that a change in between ends the wait.
        """
        while not client.gone:
            relieved = relief()
            async with self.lock:
                if not client.connection.congested and client.connection.share():
                    return await make()
            await relieved()
        return None
