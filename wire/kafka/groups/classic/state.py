"""The states of a classic group, and which may follow which: a table, enforced in one place. Pure.

The states and `VALID_PREVIOUS` are those of Kafka's `ClassicGroupState` of 4.2, but for one thing:
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
    """The values are the names that tools show."""

    EMPTY = "Empty"
    """It has no members."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join, or join again, until all who are known have or their time is over."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The leader works out the assignment; the others wait for it."""
    STABLE = "Stable"
    """Every member may have its assignment."""
    DEAD = "Dead"
    """It is deleted, or another broker's: callers that hold it look up its successor."""


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
"""By state, those that it may follow."""


def following(previous: ClassicGroupState, state: ClassicGroupState) -> ClassicGroupState:
    """`state`, which must be one that may follow; anything else is a mistake of ours."""
    assert previous in VALID_PREVIOUS[state], (
        f"a group that is {previous.value} does not become {state.value}"
    )
    return state
