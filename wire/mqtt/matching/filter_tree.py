"""Subscriptions by topic filter: all that match a topic name are found in one walk. Pure.

A tree of levels. A name is matched level by level: each node that it has reached goes on by the
level itself and by `+`, and gathers what hangs on `#`. A walk costs as many steps as there are
nodes that match a beginning of the name, whatever else is subscribed to.

Invariant: a node without subscribers and without children does not exist, so what was added and
removed again leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class _FilterNode(Generic[Key, Value]):
    __slots__ = ("children", "hash", "here")

    def __init__(self) -> None:
        self.children: dict[str, _FilterNode[Key, Value]] | None = None
        self.here: dict[Key, Value] | None = None
        """Of filters that end at this level."""
        self.hash: dict[Key, Value] | None = None
        """Of filters that go on with `#`: for this level and all below."""

    @property
    def is_empty(self) -> bool:
        return not (self.children or self.here or self.hash)


class FilterTree(Generic[Key, Value]):
    """See the module's docstring. A subscriber has one value for each filter."""

    __slots__ = ("_root", "count")

    def __init__(self) -> None:
        self._root: _FilterNode[Key, Value] = _FilterNode()
        self.count = 0
        """Subscriptions there are."""

    def add(self, filter: str, key: Key, value: Value) -> None:
        """Subscribe, or replace the value of a subscription."""
        levels = filter.split("/")
        if levels[-1] == "#":
            node = self._made(levels[:-1])
            if node.hash is None:
                node.hash = {}
            held = node.hash
        else:
            node = self._made(levels)
            if node.here is None:
                node.here = {}
            held = node.here
        self.count += key not in held
        held[key] = value

    def _made(self, levels: list[str]) -> _FilterNode[Key, Value]:
        node = self._root
        for level in levels:
            if node.children is None:
                node.children = {}
            below = node.children.get(level)
            if below is None:
                below = node.children[level] = _FilterNode()
            node = below
        return node

    def remove(self, filter: str, key: Key) -> bool:
        """Whether there was such a subscription."""
        levels = filter.split("/")
        is_hash = levels[-1] == "#"
        if is_hash:
            levels.pop()
        path = [self._root]
        for level in levels:
            below = (path[-1].children or {}).get(level)
            if below is None:
                return False
            path.append(below)
        node = path[-1]
        held = node.hash if is_hash else node.here
        if held is None or key not in held:
            return False
        del held[key]
        self.count -= 1
        if not held:
            if is_hash:
                node.hash = None
            else:
                node.here = None
        self._prune(path, levels)
        return True

    def _prune(self, path: list[_FilterNode[Key, Value]], levels: list[str]) -> None:
        for depth in range(len(levels), 0, -1):
            if not path[depth].is_empty:
                return
            above = path[depth - 1]
            assert above.children is not None
            del above.children[levels[depth - 1]]
            if not above.children:
                above.children = None

    def match(self, topic: str) -> Iterator[tuple[Key, Value]]:
        """All subscriptions to filters that the name matches; a subscriber may come several times.

        Names that begin with `$` are not for filters that begin with a wildcard [MQTT-4.7.2-1].
        """
        wild = not topic.startswith("$")
        root = self._root
        if root.hash is not None and wild:
            yield from root.hash.items()
        reached = [root]
        for level in topic.split("/"):
            reached = _below(reached, level, wild)
            wild = True
            for node in reached:
                if node.hash is not None:
                    yield from node.hash.items()
        for node in reached:
            if node.here is not None:
                yield from node.here.items()


def _below(
    nodes: list[_FilterNode[Key, Value]], level: str, wild: bool
) -> list[_FilterNode[Key, Value]]:
    """Where a walk goes on with a level: by its name, and by `+` if that may stand for it."""
    below = []
    for node in nodes:
        children = node.children
        if children is not None:
            found = children.get(level)
            if found is not None:
                below.append(found)
            found = children.get("+") if wild else None
            if found is not None:
                below.append(found)
    return below
