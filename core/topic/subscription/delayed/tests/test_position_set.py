"""A set of positions, beside Python's."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.topic.subscription.delayed.position_set import PositionSet

POSITIONS = st.tuples(st.integers(0, 2), st.integers(0, 40))
VERBS = st.sampled_from(["add", "add_all", "discard", "discard_to"])
STEPS = st.tuples(VERBS, POSITIONS, st.integers(1, 1 << 20))


@given(st.lists(STEPS, max_size=40))
def test_like_a_set(steps: list[tuple[str, tuple[int, int], int]]) -> None:
    found, model = PositionSet(), set[tuple[int, int]]()
    for verb, position, entries in steps:
        if verb == "add_all":
            ledger, first = position
            entries &= (1 << 41 - first) - 1 or 1
            added = {(ledger, first + at) for at in range(41) if entries >> at & 1}
            new = found.add_all(position, entries) if entries else 0
            assert {(ledger, first + at) for at in range(41) if new >> at & 1} == added - model
            model |= added
        elif verb == "add":
            assert found.add(position) == (position not in model)
            model.add(position)
        elif verb == "discard":
            assert found.discard(position) == (position in model)
            model.discard(position)
        else:
            found.discard_to(position)
            model = {each for each in model if each > position}
        assert len(found) == len(model)
        every = [(ledger, entry) for ledger in range(3) for entry in range(41)]
        assert {each for each in every if each in found} == model
        assert found.first == min(model, default=None)
        assert set(found._ledgers) == {ledger for ledger, _ in model}
    found.clear()
    assert (len(found), found._ledgers) == (0, {})
