"""Orders that were added, and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.compaction.survivors import PARTS, Survivors

ENDS = st.one_of(st.integers(1, 50), st.integers(PARTS, 2**45))


@given(ENDS, st.data())
def test_what_was_added_is_there(end: int, data: st.DataObject) -> None:
    orders = st.integers(0, end - 1)
    added, asked = data.draw(st.sets(orders)), data.draw(st.lists(orders))
    made = Survivors(end)
    for order in added:
        made.add(order)
    for order in [*asked, *added, *sorted(added)]:
        assert made.has(order) == (order in added)
    assert len(made._parts) <= PARTS
