"""Lists the children of a path in `embedded.py`, in steps between which other tasks run.

Theory. A list has to show one state of the tree, however long it takes: it is read in one
transaction. As long as that lasts, everything that is read on its connection is as old as it is. So
lists have connections of their own, each one at a time, and what is read besides is current.

Most children have little below them. So all paths below are read in their order, which takes a
quarter of a microsecond for each. Where most of them are not children, the rest is found by jumps
from child to child (`schema.CHILDREN`), which takes 1.6 for each, and nothing for what is below it.

Long lists are kept until a path below is made or deleted; new values of paths change none.

Invariant: a kept list is what the tree would give now. So none is kept that was read while a path
was being made or deleted: the thread that writes may have done it before or after.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import msgspec
import trio

from magnetar.core.metadata import schema

PATHS_PER_REST: Final = 1_000
"""Paths that are read before other tasks run, in a third of a millisecond."""
JUMPS_PER_REST: Final = 200
"""The same by jumps."""
SPARSE: Final = 4
"""From so many paths for each child on, jumps are cheaper."""
IDLE_MAX: Final = 2
"""Connections that are kept for lists to come."""
_texts: Final = msgspec.json.Decoder(list[str])

KEPT_MIN: Final = 1_000
"""Names of a list that is kept: a shorter one is read in less than a millisecond."""
KEPT_NAMES_MAX: Final = 50_000
"""Of all kept lists together, in 5 MB."""


class Listings:
    """See the module's docstring. `connect` makes a connection that reads committed data."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._idle: list[sqlite3.Connection] = []
        self._kept: dict[str, list[str]] = {}
        """By path with its final slash; the one that was used last is at the end."""
        self._moving = 0
        """Paths that are being made or deleted."""
        self._moves = 0
        """Those that ever were."""

    async def children(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        names = self._kept.pop(start, None)
        if names is None:
            settled, moves = not self._moving, self._moves
            names = await self._read(start)
            if not settled or moves != self._moves or len(names) < KEPT_MIN:
                return names
        self._keep(start, names)
        return names.copy()

    @contextmanager
    def moving(self, path: str) -> Iterator[None]:
        """While this path is being made or deleted."""
        self.begin_move(path)
        try:
            yield
        finally:
            self.end_move()

    def begin_move(self, path: str) -> None:
        self._moving += 1
        self._moves += 1
        for start in [each for each in self._kept if path.startswith(each)]:
            del self._kept[start]

    def end_move(self) -> None:
        self._moving -= 1

    def _keep(self, start: str, names: list[str]) -> None:
        self._kept[start] = names
        while sum(map(len, self._kept.values())) > KEPT_NAMES_MAX:
            del self._kept[next(iter(self._kept))]

    async def _read(self, start: str) -> list[str]:
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            connection.execute("BEGIN")
            return sorted(await _children(connection, start))
        finally:
            connection.rollback()
            if len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


async def _children(connection: sqlite3.Connection, start: str) -> dict[str, None]:
    """Nearly sorted, so that sorting is quick."""
    names: dict[str, None] = {}
    below = schema.below(start) | {"number": PATHS_PER_REST}
    while True:
        ((text, last),) = connection.execute(schema.BELOW, below).fetchall()
        some, known = _texts.decode(text), len(names)
        names.update(dict.fromkeys(some if "/" not in text else _first_parts(some)))
        if len(some) < PATHS_PER_REST:
            return names
        await trio.lowlevel.checkpoint()
        if (len(names) - known) * SPARSE < len(some):
            break
        below["after"] = start + last
    below["first"] = start + last + "\0"  # the least path behind it
    # a statement that is not closed would hold its state of the tree
    with closing(connection.execute(schema.CHILDREN, below)) as rows:
        while jumps := rows.fetchmany(JUMPS_PER_REST):
            names.update((name, None) for (name,) in jumps)
            if len(jumps) == JUMPS_PER_REST:
                await trio.lowlevel.checkpoint()
    return names


def _first_parts(paths: list[str]) -> list[str]:
    return [path.partition("/")[0] for path in paths]
