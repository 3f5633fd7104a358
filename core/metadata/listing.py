"""Lists the children of a path in `embedded.py`, in steps between which other tasks run.

Theory. A list has to show one state of the tree, however long it takes: it is read in one
transaction. As long as that lasts, everything that is read on its connection is as old as it is. So
lists have connections of their own, each one at a time, and what is read besides is current.

Most children have little below them. So all paths below are read in their order, which takes a
third of a microsecond for each. Where most of them are not children, the rest is found by jumps
from child to child (`schema.CHILDREN`), which takes 1.6 for each, and nothing for what is below it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Final

import trio

from magnetar.core.metadata import schema

ROWS_PER_REST: Final = 500
"""Paths that are read before other tasks run, in a third of a millisecond."""
JUMPS_PER_REST: Final = 200
"""The same by jumps."""
SPARSE: Final = 4
"""From so many paths for each child on, jumps are cheaper."""
IDLE_MAX: Final = 2
"""Connections that are kept for lists to come."""


class Listings:
    """See the module's docstring. `connect` makes a connection that reads committed data."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._idle: list[sqlite3.Connection] = []

    async def children(self, path: str) -> list[str]:
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            connection.execute("BEGIN")
            return sorted(await _children(connection, path.rstrip("/") + "/"))
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
    below = schema.below(start)
    # a statement that is not closed would hold its state of the tree
    with closing(connection.execute(schema.BELOW, below)) as rows:
        while some := rows.fetchmany(ROWS_PER_REST):
            known = len(names)
            names.update((path.partition("/")[0], None) for (path,) in some)
            if len(some) < ROWS_PER_REST:
                return names
            await trio.lowlevel.checkpoint()
            if (len(names) - known) * SPARSE < len(some):
                break
        else:
            return names
    below["first"] = start + next(reversed(names)) + schema.BEHIND
    with closing(connection.execute(schema.CHILDREN, below)) as rows:
        while some := rows.fetchmany(JUMPS_PER_REST):
            names.update((name, None) for (name,) in some)
            if len(some) == JUMPS_PER_REST:
                await trio.lowlevel.checkpoint()
    return names
