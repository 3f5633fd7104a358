"""A tree of topic filters with subscriptions, searched by topic name. Pure.

Each level of a filter is a level of the tree. The search follows, from each reached node, the
children for the name's next level and for `+`, and collects the subscriptions of `#`. Its cost is
the number of nodes that match a prefix of the name, independent of all other subscriptions.

Invariant: a node without subscriptions and children does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class _FilterNode(Generic[Key, Value]):
    __slots__ = ("children", "hash", "here")

    def __init__(self) -> None:
        self.children: dict[str, _FilterNode[Key, Value]] | None = None
        self.here: dict[Key, Value] | None = None
        """Subscriptions of filters that end at this level."""
        self.hash: dict[Key, Value] | None = None
        """Subscriptions of filters that continue with `#`, which matches this level and all below.
        """

    @property
    def is_empty(self) -> bool:
        return not (self.children or self.here or self.hash)


class FilterTree(Generic[Key, Value]):
    """See the module's docstring. A subscriber has one value per filter."""

    __slots__ = ("_root", "count")

    def __init__(self) -> None:
        self._root: _FilterNode[Key, Value] = _FilterNode()
        self.count = 0
        """The number of subscriptions."""

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
        """Remove a subscription; returns whether it existed."""
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
        """Find the subscriptions whose filters match the name; a subscriber may have several."""
        for held in self.matching(topic):
            yield from held.items()

    def matching(self, topic: str) -> list[Mapping[Key, Value]]:
        """The same, filter by filter.

        Filters that begin with a wildcard do not match names that begin with `$` [MQTT-4.7.2-1].
        """
        wild = not topic.startswith("$")
        root = self._root
        found: list[Mapping[Key, Value]] = []
        if root.hash is not None and wild:
            found.append(root.hash)
        reached = [root]
        for level in topic.split("/"):
            reached = _below(reached, level, wild)
            wild = True
            found += [node.hash for node in reached if node.hash is not None]
        found += [node.here for node in reached if node.here is not None]
        return found


def _below(
    nodes: list[_FilterNode[Key, Value]], level: str, wild: bool
) -> list[_FilterNode[Key, Value]]:
    """The next nodes for a level: its own, and that of `+` if it matches."""
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
