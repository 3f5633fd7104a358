"""A tree of topic names with values, searched by topic filter. Pure.

It serves retained messages, where names are stored and filters are looked up. A filter may match a
hundred thousand names, so the search is a generator, which its caller can pause; no step
visits more than one node. Names that are added or removed meanwhile may be found or not.

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


_Steps = Iterator[tuple[_NameNode[Value], int, str]]
"""Nodes to visit, with the depth and the name of each."""


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

    def all(self) -> Iterator[tuple[str, Value]]:
        """All names with their values, in any order."""
        return self._below(self._root, "", 0, hidden=True)

    def match(self, filter: str) -> Iterator[tuple[str, Value]]:
        """Find the names that the filter matches, with their values, in any order."""
        levels = filter.split("/")
        stack: list[_Steps[Value]] = [iter([(self._root, 0, "")])]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            node, depth, prefix = step
            if depth == len(levels):
                if node.value is not None:
                    yield prefix, node.value
            elif levels[depth] == "#":
                yield from self._below(node, prefix, depth, hidden=False)
            else:
                stack.append(_next(node, levels[depth], depth, prefix))

    @staticmethod
    def _below(
        node: _NameNode[Value], prefix: str, depth: int, *, hidden: bool
    ) -> Iterator[tuple[str, Value]]:
        """All names at and below a node: `#` matches its parent level, too. `hidden` includes
        those that begin with `$`.
        """
        stack: list[_Steps[Value]] = [iter([(node, depth, prefix)])]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            node, depth, prefix = step
            if node.value is not None and depth:
                yield prefix, node.value
            if node.children:
                stack.append(_steps(node.children, depth, prefix, hidden=hidden))


def _next(node: _NameNode[Value], level: str, depth: int, prefix: str) -> _Steps[Value]:
    """The nodes below that a level of a filter matches, which is not `#`."""
    children = node.children or {}
    if level == "+":
        return _steps(children, depth, prefix, hidden=False)
    below = children.get(level)
    return iter(() if below is None else [_step(below, level, depth, prefix)])


def _steps(
    children: dict[str, _NameNode[Value]], depth: int, prefix: str, *, hidden: bool
) -> _Steps[Value]:
    """Steps to the children, whose names are copied: they may change meanwhile."""
    for name in list(children):
        below = children.get(name)
        if below is not None and (depth or hidden or not name.startswith("$")):
            yield _step(below, name, depth, prefix)


def _step(
    below: _NameNode[Value], name: str, depth: int, prefix: str
) -> tuple[_NameNode[Value], int, str]:
    return below, depth + 1, name if not depth else f"{prefix}/{name}"
