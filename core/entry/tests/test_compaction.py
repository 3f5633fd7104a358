"""Messages as rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.compaction import Item, rows_of

ITEMS = st.lists(
    st.builds(Item, st.integers(0, 2**31 - 1), st.none() | st.binary(), st.integers(-1, 2**31 - 1)),
    max_size=9,
)


@given(ITEMS)
def test_rows_are_the_items(items: list[Item]) -> None:
    rows = rows_of(items)
    assert rows.items == items
    assert len(rows) == len(items)
    assert rows.has_keyless == any(one.key is None for one in items)
