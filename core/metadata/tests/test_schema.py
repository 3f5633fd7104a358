"""The file itself, and the one statement that is hard. What is refused: test_embedded.py."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.core.metadata import schema


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata"


def test_a_new_file_is_marked_as_ours(path: Path) -> None:
    connection = schema.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_the_live_file_is_never_synced(path: Path) -> None:
    connection = schema.connect(path)
    assert connection.execute("PRAGMA synchronous").fetchone() == (0,)
    connection.close()


def test_a_reader_cannot_write(path: Path) -> None:
    schema.connect(path).close()
    reader = schema.connect_reader(path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute(schema.PUT, ("/a", b"", 0, 0))
    reader.close()


NAMES = st.text("ab-0\U0010ffff", min_size=1, max_size=3)
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names)))


@given(PATHS, st.sampled_from(["/", "/a/", "/a/b/", "/-/", "/b-/"]))
@example(["/0", "/0/0", "/0/\U0010ffff0"], "/")
def test_children_are_the_next_names_below(paths: list[str], start: str) -> None:
    """Against the naive way, which reads everything; some come twice, and in the order of paths."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(schema.CREATE)
    connection.executemany(schema.PUT, [(path, b"", 0, 0) for path in paths])
    found = [name for (name,) in connection.execute(schema.CHILDREN, schema.below(start))]
    connection.close()
    below = {path[len(start) :] for path in paths if path.startswith(start) and path != start}
    assert set(found) == {rest.partition("/")[0] for rest in below}
    assert len(found) <= 2 * len(set(found))
