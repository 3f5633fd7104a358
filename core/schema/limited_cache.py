"""A cache that is limited by the weight of what it has; the oldest goes first. Pure."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


class LimitedCache(Generic[Key, Item]):
    """See the module's docstring. What weighs more than everything may is not kept."""

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        self._items: dict[Key, tuple[Item, int]] = {}
        self.weight = 0

    def get(self, key: Key) -> Item | None:
        found = self._items.get(key)
        return None if found is None else found[0]

    def keep(self, key: Key, item: Item, weight: int) -> None:
        self.drop(key)
        if weight > self._weight_max:
            return
        while self.weight + weight > self._weight_max:
            self.drop(next(iter(self._items)))
        self._items[key] = item, weight
        self.weight += weight

    def drop(self, key: Key) -> None:
        found = self._items.pop(key, None)
        if found is not None:
            self.weight -= found[1]

    def clear(self) -> None:
        self._items.clear()
        self.weight = 0
