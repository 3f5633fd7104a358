"""The tree of names finds what a plain comparison finds, and forgets what it must."""

from __future__ import annotations

import gc
import time

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.matching.name_tree import NameTree
from magnetar.wire.mqtt.matching.tests.test_filter_tree import FILTERS, NAMES
from magnetar.wire.mqtt.topics import matches


@given(names=st.lists(NAMES, max_size=12), filter=FILTERS)
def test_as_a_plain_comparison_would_find_it(names: list[str], filter: str) -> None:
    tree: NameTree[int] = NameTree()
    values = {name: number for number, name in enumerate(names)}
    for name, number in values.items():
        tree.set(name, -1)
        tree.set(name, number)
    assert tree.count == len(values)
    found = [one for one in tree.match(filter) if one is not None]
    assert dict(found) == {name: value for name, value in values.items() if matches(filter, name)}
    assert len(found) == len(dict(found))


@given(names=st.sets(NAMES, max_size=8), data=st.data())
def test_nothing_is_left_of_what_was_removed(names: set[str], data: st.DataObject) -> None:
    tree: NameTree[str] = NameTree()
    for name in names:
        tree.set(name, name)
        assert tree.get(name) == name
    for name in data.draw(st.permutations(sorted(names))):
        assert tree.remove(name) == name
        assert tree.remove(name) is None
        assert tree.get(name) is None
    assert tree.count == tree.bytes == 0
    assert not tree._root.children


def test_names_may_come_and_go_during_a_walk() -> None:
    tree: NameTree[int] = NameTree()
    for number in range(100):
        tree.set(f"a/{number}", number)
    walk = tree.match("a/#")
    next(walk)
    for number in range(50, 150):
        tree.remove(f"a/{number}")
        tree.set(f"b/{number}", number)
    assert len(list(walk)) < 100


@given(names=st.lists(NAMES, max_size=12))
def test_all_are_found_also_those_that_wildcards_do_not_match(names: list[str]) -> None:
    tree: NameTree[str] = NameTree()
    for name in names:
        tree.set(name, name)
    found = [one for one in tree.all() if one is not None]
    assert sorted(found) == sorted((name, name) for name in set(names))


def test_a_search_in_vain_can_be_paused() -> None:
    tree: NameTree[int] = NameTree()
    for number in range(20_000):
        tree.set(f"{number}/a", number)
    for filter, steps in (("+/b", 40), ("+/+/+", 40), ("x/#", 0)):
        found = list(tree.match(filter))
        assert found == [None] * steps


def test_no_step_visits_all_names_below_a_level() -> None:
    """A hundred thousand devices below one level are walked without a pause of the loop."""
    tree: NameTree[int] = NameTree()
    for number in range(100_000):
        tree.set(f"devices/{number}", number)
    gc.disable()  # a collection of all objects of the tests takes longer
    try:
        _check_steps(tree)
    finally:
        gc.enable()


def _check_steps(tree: NameTree[int]) -> None:
    for filter in ("devices/#", "devices/+", "+/+", "#"):
        walk, slowest = tree.match(filter), 0.0
        for _ in range(3):
            begun = time.process_time()
            next(walk)
            slowest = max(slowest, time.process_time() - begun)
        assert slowest < 0.02, "copying the level's names takes 2 ms"
