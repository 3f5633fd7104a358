"""A tree of topic names with values, searched by topic filter. Pure.

It serves retained messages, where names are stored and filters are looked up. A filter may match a
hundred thousand names, or look at as many in vain, so the search is a generator, which its caller
can pause: it yields None after many steps without a match. Names that are added or removed
meanwhile may be found or not; a value that is found is the present one. Searches that wait hold the
levels below a branch together.

Most names share their first levels only, so what is below a level takes as little memory as it can:

    a value   one name ends at this level, and none goes on
    `_Rest`   one name goes on, with these levels, and none ends here
    `_Branch` anything else

Invariant: as in `FilterTree`, a level without a name at or below it does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Final, Generic, TypeVar

Value = TypeVar("Value")
NAME_BYTES: Final = 150
"""What a name costs besides its characters."""
BRANCH_BYTES: Final = 300
"""What a branch costs."""
STEPS_MAX: Final = 500
"""Levels that are looked at in one step of a search: half a millisecond."""


class _Rest(Generic[Value]):
    """The only name below a level."""

    __slots__ = ("levels", "value")

    def __init__(self, levels: str, value: Value) -> None:
        self.levels = intern(levels)  # devices have topics of the same names
        self.value = value


class _Branch(Generic[Value]):
    """Several names at and below a level."""

    __slots__ = ("_levels", "children", "value")

    def __init__(self, value: Value | None = None) -> None:
        self.children: dict[str, _Branch[Value] | _Rest[Value] | Value] = {}
        self.value = value
        self._levels: tuple[str, ...] | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels below this one as they are now, for all searches until the next change."""
        if self._levels is None:
            self._levels = tuple(self.children)
        return self._levels

    def changed(self) -> None:
        """There are other levels below this one."""
        self._levels = None

    def put(self, levels: str, value: Value) -> None:
        """Put the only name below one of the levels below this one."""
        level, slash, rest = levels.partition("/")
        self.children[level] = _Rest(rest, value) if slash else value


class NameTree(Generic[Value]):
    """See the module's docstring. A value is never None."""

    __slots__ = ("_branches", "_characters", "_root", "count")

    def __init__(self) -> None:
        self._root: _Branch[Value] = _Branch()
        self._branches = self._characters = 0
        self.count = 0

    @property
    def bytes(self) -> int:
        """Memory of the names, estimated."""
        return NAME_BYTES * self.count + BRANCH_BYTES * self._branches + self._characters

    def get(self, name: str) -> Value | None:
        branch, rest = self._root, name
        while True:
            level, slash, rest = rest.partition("/")
            below = branch.children.get(level)
            if not isinstance(below, _Branch):
                return _value_of(below, rest if slash else None)
            if not slash:
                return below.value
            branch = below

    def set(self, name: str, value: Value) -> None:
        branch, rest = self._root, name
        while True:
            level, slash, rest = rest.partition("/")
            below = branch.children.get(level)
            if not isinstance(below, _Branch):
                if below is None or _value_of(below, rest if slash else None) is not None:
                    if below is None:
                        self._added(name)
                        branch.changed()
                    branch.children[level] = _Rest(rest, value) if slash else value
                    return
                branch.children[level] = below = _branched(below)
                self._branches += 1
            if not slash:
                if below.value is None:
                    self._added(name)
                below.value = value
                return
            branch = below

    def _added(self, name: str) -> None:
        self.count += 1
        self._characters += len(name)

    def remove(self, name: str) -> Value | None:
        """Remove a name; returns its value, None if there was none."""
        path: list[tuple[_Branch[Value], str]] = []
        branch, rest = self._root, name
        while True:
            level, slash, rest = rest.partition("/")
            path.append((branch, level))
            below = branch.children.get(level)
            if not isinstance(below, _Branch):
                value = _value_of(below, rest if slash else None)
                if value is not None:
                    del branch.children[level]
                    branch.changed()
                break
            if not slash:
                value, below.value = below.value, None
                path.append((below, ""))
                break
            branch = below
        if value is not None:
            self.count -= 1
            self._characters -= len(name)
            self._branches -= _prune(path)
        return value

    def all(self) -> Iterator[tuple[str, Value] | None]:
        """All names with their values, in any order, those that begin with `$` too."""
        return self._search(["#"], iter(list(self._root.children)))

    def match(self, filter: str) -> Iterator[tuple[str, Value] | None]:
        """Find the names that the filter matches, with their values, in any order."""
        levels = filter.split("/")
        return self._search(levels, _levels_below(self._root, levels, 0))

    def _search(
        self, levels: list[str], first: Iterator[str]
    ) -> Iterator[tuple[str, Value] | None]:
        depth, steps, walks = 0, 0, [(self._root, "", first)]
        while walks:
            steps += 1
            if steps % STEPS_MAX == 0:
                yield None
            branch, prefix, walk = walks[-1]
            level = next(walk, None)
            if level is None:
                walks.pop()
                depth -= 1
                continue
            below = branch.children.get(level)  # None if it was removed meanwhile
            name = prefix + level
            if isinstance(below, _Branch):
                if below.value is not None and _ends(levels, depth + 1):
                    yield name, below.value
                depth += 1
                walks.append((below, name + "/", _levels_below(below, levels, depth)))
            elif isinstance(below, _Rest):
                if _matches_rest(levels, depth + 1, below.levels.split("/")):
                    yield f"{name}/{below.levels}", below.value
            elif below is not None and _ends(levels, depth + 1):
                yield name, below


def _value_of(below: _Rest[Value] | Value | None, rest: str | None) -> Value | None:
    """The value of the name that goes on with `rest`, or ends if that is None; it is not a branch
    where they are.
    """
    if isinstance(below, _Rest):
        return below.value if below.levels == rest else None
    return below if rest is None else None


def _branched(below: _Rest[Value] | Value) -> _Branch[Value]:
    """The same as a branch, to which more names can be added."""
    if not isinstance(below, _Rest):
        return _Branch(below)
    branch: _Branch[Value] = _Branch()
    branch.put(below.levels, below.value)
    return branch


def _prune(path: list[tuple[_Branch[Value], str]]) -> int:
    """Remove branches that are not needed, from the last one up to the root; returns how many."""
    removed = 0
    while len(path) > 1:
        branch, _ = path.pop()
        if branch.children:
            break
        removed += 1
        above, level = path[-1]
        if branch.value is not None:
            above.children[level] = branch.value
            break
        del above.children[level]
        above.changed()
    return removed


def _levels_below(branch: _Branch[Value], levels: list[str], depth: int) -> Iterator[str]:
    """The levels of a branch that the filter's level at that depth may match."""
    wanted = levels[min(depth, len(levels) - 1)]
    if depth >= len(levels) and wanted != "#":
        return iter(())
    if wanted in ("#", "+"):
        below = branch.levels
        return iter(below if depth else [one for one in below if not one.startswith("$")])
    return iter((wanted,))


def _ends(levels: list[str], depth: int) -> bool:
    """Whether the filter matches a name of so many levels, all of which match."""
    return depth == len(levels) or (levels[-1] == "#" and depth >= len(levels) - 1)


def _matches_rest(levels: list[str], depth: int, rest: list[str]) -> bool:
    """Whether the filter, from that depth on, matches the rest of a name."""
    if not _ends(levels, depth + len(rest)):
        return False
    wanted = levels[depth : depth + len(rest)]
    return all(one in ("#", "+") or one == level for one, level in zip(wanted, rest, strict=False))
