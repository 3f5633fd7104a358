"""A tree of topic names with values, searched by topic filter. Pure.

It serves retained messages, where names are stored and filters are looked up. A filter may match a
hundred thousand names, so the search is a generator, which its caller can pause. Names that are
added or removed meanwhile may be found or not.

Invariant: as in `FilterTree`, a node without value and children does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class _NameNode(Generic[Value]):
    __slots__ = ("children", "value")

    def __init__(self) -> None:
        self.children: dict[str, _NameNode[Value]] | None = None
        self.value: Value | None = None


class NameTree(Generic[Value]):
    """See the module's docstring. A value is never None."""

    __slots__ = ("_root", "count")

    def __init__(self) -> None:
        self._root: _NameNode[Value] = _NameNode()
        self.count = 0

    def get(self, name: str) -> Value | None:
        node = self._root
        for level in name.split("/"):
            below = (node.children or {}).get(level)
            if below is None:
                return None
            node = below
        return node.value

    def set(self, name: str, value: Value) -> None:
        node = self._root
        for level in name.split("/"):
            if node.children is None:
                node.children = {}
            below = node.children.get(level)
            if below is None:
                below = node.children[level] = _NameNode()
            node = below
        self.count += node.value is None
        node.value = value

    def remove(self, name: str) -> Value | None:
        """Remove a name; returns its value, None if there was none."""
        levels = name.split("/")
        path = [self._root]
        for level in levels:
            below = (path[-1].children or {}).get(level)
            if below is None:
                return None
            path.append(below)
        value, path[-1].value = path[-1].value, None
        self.count -= value is not None
        for depth in range(len(levels), 0, -1):
            node, above = path[depth], path[depth - 1]
            if node.children or node.value is not None:
                break
            assert above.children is not None
            del above.children[levels[depth - 1]]
            if not above.children:
                above.children = None
        return value

    def match(self, filter: str) -> Iterator[tuple[str, Value]]:
        """Find the names that the filter matches, with their values, in any order."""
        levels = filter.split("/")
        stack: list[tuple[_NameNode[Value], int, str]] = [(self._root, 0, "")]
        while stack:
            node, depth, prefix = stack.pop()
            if depth == len(levels):
                if node.value is not None:
                    yield prefix, node.value
                continue
            level = levels[depth]
            if level == "#":
                yield from self._all_below(node, prefix, depth)
                continue
            for name, below in self._next(node, level, depth):
                stack.append((below, depth + 1, name if not depth else f"{prefix}/{name}"))

    @staticmethod
    def _next(node: _NameNode[Value], level: str, depth: int) -> list[tuple[str, _NameNode[Value]]]:
        children = node.children or {}
        if level == "+":
            return [
                (name, below)
                for name, below in children.items()
                if depth or not name.startswith("$")
            ]
        below = children.get(level)
        return [] if below is None else [(level, below)]

    @staticmethod
    def _all_below(node: _NameNode[Value], prefix: str, depth: int) -> Iterator[tuple[str, Value]]:
        """All names at and below a node: `#` matches its parent level, too."""
        stack = [(node, depth, prefix)]
        while stack:
            node, depth, prefix = stack.pop()
            if node.value is not None and depth:
                yield prefix, node.value
            for name, below in list((node.children or {}).items()):
                if depth or not name.startswith("$"):
                    stack.append((below, depth + 1, name if not depth else f"{prefix}/{name}"))
