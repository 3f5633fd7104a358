"""Long work on the one loop: it lets others have a turn now and then.

    async for topic in Cooperative(request.topics):
        answers.append(await described(topic))

What is awaited on the way is mostly there already, so a task would go on without a rest for as long
as its list, and its sender decides how long that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, TypeVar

import trio

Item = TypeVar("Item")

WORK_SECONDS: Final = 0.005
"""Then it rests. Others may do likewise, and each has its turn."""


class Cooperative(Generic[Item]):
    """These things, one after the other, with a turn of the loop in between when it is time."""

    __slots__ = ("_items", "_until")

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._until = trio.current_time() + WORK_SECONDS

    def __aiter__(self) -> Cooperative[Item]:
        return self

    async def __anext__(self) -> Item:
        if trio.current_time() >= self._until:
            await trio.lowlevel.checkpoint()
            self._until = trio.current_time() + WORK_SECONDS
        for item in self._items:
            return item
        raise StopAsyncIteration
