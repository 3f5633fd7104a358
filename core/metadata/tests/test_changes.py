import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.metadata import changes, schema
from magnetar.core.metadata.changes import Count, Delete, Put

PATHS = st.text(max_size=5)
TABLES = ("node", "counter")
NUMBERS = st.integers(-1, 2**63 - 1)
CHANGES = st.lists(
    st.builds(Put, PATHS, st.binary(max_size=9), NUMBERS, st.booleans())
    | st.builds(Delete, PATHS)
    | st.builds(Count, PATHS, NUMBERS)
)


@given(CHANGES)
def test_what_is_encoded_is_decoded(group: list[changes.Change]) -> None:
    assert changes.decode(changes.encode(group)) == group


@given(st.binary())
def test_hostile_bytes_are_a_value_error(body: bytes) -> None:
    try:
        changes.decode(body)
    except ValueError:
        return


@given(CHANGES)
def test_applied_twice_is_applied_once(group: list[changes.Change]) -> None:
    found = []
    for times in (1, 2):
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(schema.CREATE)
        for _ in range(times):
            changes.apply(connection, group)
        found.append(
            [
                *connection.execute("SELECT * FROM node"),
                *connection.execute("SELECT * FROM counter"),
            ]
        )
        connection.close()
    assert found[0] == found[1]


def test_a_change_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid"):
        changes.decode(b"\x91\x92\x09\xa1/")
