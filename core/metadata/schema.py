"""The SQLite files of the embedded metadata store: opening them, and all SQL statements.

Each file has our application id and a format number, so that a foreign file, or one of a later
version, is refused with a clear message and never changed.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from magnetar.core.kernel.errors import StorageFailed

APPLICATION_ID: Final = 0x4D474E54
"""MGNT, in SQLite's header field for the application (`PRAGMA application_id`)."""
FORMAT: Final = 1
CACHE_KIB: Final = 4096
BUSY_MS: Final = 2_000
"""How long another process (a backup, an operator's shell) may lock the file."""
CHECKPOINT_PAGES: Final = 100
"""After so many a write copies what SQLite's log has into the file. With its default of 1,000 it is
one write in a hundred, which takes 2 ms (with this 0.7); all together take no less time.
"""
NUMBERS_RESERVED: Final = 100
"""Numbers reserved by one write of a counter; unused ones are lost only in a crash."""
BEHIND: Final = "0"
"""It follows the slash: all that is below `/a` is between `/a/` and `/a0`."""

CREATE: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE node (
    path TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, lease INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE counter (path TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""

GET: Final = "SELECT value, version FROM node WHERE path = ?"
VALUES: Final = "SELECT path, value FROM node WHERE path IN (SELECT value FROM json_each(?))"
BETWEEN: Final = "SELECT path, value FROM node WHERE path BETWEEN ? AND ? ORDER BY path"
VALUES_BETWEEN: Final = "SELECT value FROM node WHERE path BETWEEN ? AND ? ORDER BY path"
GET_VERSION: Final = "SELECT version FROM node WHERE path = ?"
PUT: Final = "REPLACE INTO node (path, value, version, lease) VALUES (?, ?, ?, ?)"
DELETE: Final = "DELETE FROM node WHERE path = ?"
DROP_LEASES: Final = "DELETE FROM node WHERE lease = 1"
GET_COUNTER: Final = "SELECT next FROM counter WHERE path = ?"
COUNT: Final = "REPLACE INTO counter (path, next) VALUES (?, ?)"

# The paths come as one text: a row for each takes three times as long.
BELOW: Final = """
SELECT json_group_array(name), max(name) FROM (
    SELECT substr(path, :skip) AS name FROM node WHERE path > :after AND path < :stop
    ORDER BY path LIMIT :number
)
"""

# Jumps from child to child over all that lies below each, so that the cost is that of the answer.
# A name may turn up twice (`a`, `a-b`, `a/x` is the order of paths). It is neither sorted nor made
# distinct here, so that rows come one by one and the caller can rest in between.
CHILDREN: Final = """
WITH RECURSIVE
step (path) AS (
    SELECT min(path) FROM node WHERE path >= :first AND path < :stop
    UNION ALL
    SELECT (
        SELECT min(node.path) FROM node WHERE node.path < :stop AND node.path >=
            CASE instr(substr(step.path, :skip), '/')
            WHEN 0 THEN step.path || char(0)
            ELSE substr(step.path, 1, :skip - 2 + instr(substr(step.path, :skip), '/')) || '0'
            END
    )
    FROM step WHERE step.path IS NOT NULL
)
SELECT substr(path, :skip, instr(substr(path, :skip) || '/', '/') - 1)
FROM step WHERE path IS NOT NULL
"""


def below(start: str) -> dict[str, object]:
    """The parameters of `BELOW` and `CHILDREN` for a path with a final slash. The former begins
    behind `after`, and wants the `number` of paths, too; the latter begins at `first`.
    """
    # everything below `start` lies between the two, and no path ends with a slash
    stop = start[:-1] + BEHIND
    return {"after": start, "first": start, "stop": stop, "skip": len(start) + 1}


def connect(path: Path) -> sqlite3.Connection:
    """Open the live file for writing. It is rebuilt at each start, and so never synced."""
    try:
        connection = _connect(path)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                connection.executescript(CREATE)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StorageFailed(f"{path} cannot be opened: {error}") from error
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a second connection, which reads committed data."""
    try:
        connection = _connect(path)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise StorageFailed(f"{path} cannot be opened: {error}") from error
    return connection


def connect_former(path: Path) -> sqlite3.Connection:
    """Open a store from before the commit log, which was one SQLite file."""
    try:
        connection = _connect(path)
    except sqlite3.Error as error:
        raise StorageFailed(f"{path} cannot be opened: {error}") from error
    try:
        _check_former(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise StorageFailed(f"{path} cannot be used as metadata: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    # transactions are explicit; only the writer thread uses the connection once it runs
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_former(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the file is ours and readable."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    is_blank = application_id == 0 and version == 0 and tables == 0
    if not is_blank and application_id != APPLICATION_ID:
        raise StorageFailed(f"{path} belongs to another program")
    if version > FORMAT:
        raise StorageFailed(f"{path} is of format {version}, this version reads up to {FORMAT}")
    if is_blank:
        connection.executescript(CREATE)
        return
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StorageFailed(f"{path} is damaged: {verdict}")
