"""Options come by inheritance, as compiled modules have them: nothing is said beside the bases."""

import gc

import pytest

from magnetar.core.kernel.structs import FrozenLeafStruct, FrozenStruct, LeafStruct, mypyc_attr


class Value(FrozenStruct):  # type: ignore[misc]
    numbers: list[int]


class Leaf(LeafStruct):
    numbers: list[int]


class FrozenLeaf(FrozenLeafStruct):  # type: ignore[misc]
    numbers: list[int]


@pytest.mark.parametrize("kind", [Value, FrozenLeaf])
def test_frozen(kind: type[Value | FrozenLeaf]) -> None:
    value = kind([1])
    with pytest.raises(AttributeError, match="immutable type"):
        value.numbers = []


@pytest.mark.parametrize(("kind", "tracked"), [(Value, True), (Leaf, False), (FrozenLeaf, False)])
def test_leaves_are_none_of_the_garbage_collectors_concern(
    kind: type[Value | Leaf | FrozenLeaf], tracked: bool
) -> None:
    assert gc.is_tracked(kind([1])) is tracked


def test_what_mypyc_is_told_changes_nothing_in_the_source() -> None:
    class Plain:
        pass

    assert mypyc_attr(acyclic=True)(Plain) is Plain
