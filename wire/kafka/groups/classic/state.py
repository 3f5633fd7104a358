"""The states of a classic group, and the enforced table of transitions. Pure.

The states and `VALID_PREVIOUS` are those of Kafka's `ClassicGroupState` of 4.2, with one exception:
when the last member leaves, Kafka moves the group to PREPARING_REBALANCE and within the same call,
since there is no member to wait for, on to EMPTY. Here it becomes EMPTY at once, so EMPTY may also
follow COMPLETING_REBALANCE and STABLE. Clients cannot see the difference.

A group that is loaded is in its state from the start (`GroupMetadataManager.replay` there,
`Group.resume` here): that is no transition.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class ClassicGroupState(enum.Enum):
    """The values are the names in tools."""

    EMPTY = "Empty"
    """It has no members."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join, or rejoin, until all known members have, or their time is over."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The leader computes the assignment; the others wait for it."""
    STABLE = "Stable"
    """Every member may have its assignment."""
    DEAD = "Dead"
    """It is deleted, or another broker coordinates it; callers that hold it look it up again."""


EMPTY: Final = ClassicGroupState.EMPTY
PREPARING: Final = ClassicGroupState.PREPARING_REBALANCE
COMPLETING: Final = ClassicGroupState.COMPLETING_REBALANCE
STABLE: Final = ClassicGroupState.STABLE
DEAD: Final = ClassicGroupState.DEAD

VALID_PREVIOUS: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = {
    EMPTY: frozenset({PREPARING, COMPLETING, STABLE}),
    PREPARING: frozenset({STABLE, COMPLETING, EMPTY}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    DEAD: frozenset({STABLE, PREPARING, COMPLETING, EMPTY, DEAD}),
}
"""For each state, its valid predecessors."""


def following(previous: ClassicGroupState, state: ClassicGroupState) -> ClassicGroupState:
    """Return `state`; an invalid transition is a defect of ours, and raises."""
    if previous not in VALID_PREVIOUS[state]:
        raise RuntimeError(f"a group that is {previous.value} does not become {state.value}")
    return state
