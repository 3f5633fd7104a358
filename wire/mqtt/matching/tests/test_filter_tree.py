"""The tree of filters finds what a plain comparison finds, and forgets what it must."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.matching.filter_tree import FilterTree
from magnetar.wire.mqtt.topics import is_filter, matches

LEVEL = st.sampled_from(["a", "b", "", "$s"])
NAMES = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS = st.lists(LEVEL | st.sampled_from(["+", "#"]), min_size=1, max_size=4).map("/".join)
FILTERS = FILTERS.filter(is_filter)


@given(filters=st.lists(FILTERS, max_size=12), name=NAMES)
def test_as_a_plain_comparison_would_find_it(filters: list[str], name: str) -> None:
    tree: FilterTree[int, str] = FilterTree()
    for key, filter in enumerate(filters):
        tree.add(filter, key, filter)
    expected = {(key, filter) for key, filter in enumerate(filters) if matches(filter, name)}
    found = list(tree.match(name))
    assert set(found) == expected
    assert len(found) == len(expected)


@given(filters=st.lists(FILTERS, max_size=8), data=st.data())
def test_nothing_is_left_of_what_was_removed(filters: list[str], data: st.DataObject) -> None:
    tree: FilterTree[int, None] = FilterTree()
    for key, filter in enumerate(filters):
        tree.add(filter, key, None)
    assert tree.count == len(filters)
    for key in data.draw(st.permutations(range(len(filters)))):
        assert tree.remove(filters[key], key)
        assert not tree.remove(filters[key], key)
    assert tree.count == 0
    assert tree._root.is_empty


def test_a_subscriber_has_one_value_for_each_filter() -> None:
    tree: FilterTree[str, int] = FilterTree()
    for value, filter in enumerate(("a/#", "a/+", "a/#")):
        tree.add(filter, "me", value)
    assert sorted(tree.match("a/b")) == [("me", 1), ("me", 2)]
    assert tree.count == 2


@pytest.mark.parametrize("filter", ["a", "b/#", "a/b/c", "+", "#"])
def test_what_is_not_there_is_not_removed(filter: str) -> None:
    tree: FilterTree[str, int] = FilterTree()
    tree.add("a/b", "me", 1)
    assert not tree.remove(filter, "me")
    assert not tree.remove("a/b", "you")
    assert list(tree.match("a/b")) == [("me", 1)]
