"""A queue that takes next to no memory while it is empty.

An empty `collections.deque` takes 760 bytes, since it has its first block of 64 places from the
beginning. What thousands of idle connections have each is better made when something waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class LazyQueue(Generic[T]):
    """See the module's docstring. It has those methods of a deque that its users need."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: deque[T] | None = deque(items) or None

    def __len__(self) -> int:
        return 0 if self._items is None else len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items or ())

    @property
    def first(self) -> T:
        """The next one to come out; there has to be one."""
        assert self._items is not None
        return self._items[0]

    def append(self, item: T) -> None:
        if self._items is None:
            self._items = deque()
        self._items.append(item)

    def popleft(self) -> T:
        """Take the first one out; there has to be one."""
        items = self._items
        assert items is not None
        found = items.popleft()
        if not items:
            self._items = None
        return found

    def clear(self) -> None:
        self._items = None
