"""Which state of a classic group may follow which: every pair."""

from itertools import product

import pytest

from magnetar.wire.kafka.groups.classic.state import (
    VALID_PREVIOUS,
    ClassicGroupState,
    following,
)

KAFKAS = {
    "Empty": "PreparingRebalance",
    "PreparingRebalance": "Stable CompletingRebalance Empty",
    "CompletingRebalance": "PreparingRebalance",
    "Stable": "CompletingRebalance",
    "Dead": "Stable PreparingRebalance CompletingRebalance Empty Dead",
}
"""Valid previous states of `ClassicGroupState` of Kafka 4.2."""
OURS = {("CompletingRebalance", "Empty"), ("Stable", "Empty")}
"""The last member goes: see the module's docstring."""
PAIRS = list(product(ClassicGroupState, repeat=2))


@pytest.mark.parametrize(
    ("previous", "state"), PAIRS, ids=[f"{one.value}-{other.value}" for one, other in PAIRS]
)
def test_every_pair(previous: ClassicGroupState, state: ClassicGroupState) -> None:
    kafkas = previous.value in KAFKAS[state.value].split()
    if kafkas or (previous.value, state.value) in OURS:
        assert following(previous, state) is state
    else:
        with pytest.raises(RuntimeError, match=f"{previous.value} does not become {state.value}"):
            following(previous, state)


def test_nothing_follows_dead_but_dead() -> None:
    dead = ClassicGroupState.DEAD
    assert [state for state in VALID_PREVIOUS if dead in VALID_PREVIOUS[state]] == [dead]


def test_states_are_called_by_the_names_that_tools_show() -> None:
    """`kafka-consumer-groups.sh --state` filters by them."""
    assert {state.value for state in ClassicGroupState} == set(KAFKAS)
