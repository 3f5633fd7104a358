"""Which bookies are chosen."""

import random
from collections.abc import Collection

import pytest

from magnetar.bookie.client.quorum.placement import DEFAULT_RACK, Placement, RackRules
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.core.kernel.errors import StorageFailed

SEEDS = pytest.mark.parametrize("seed", range(20))


def placement(
    racks: dict[str, str],
    seed: int = 0,
    suspects: Collection[str] = (),
    rules: RackRules | None = None,
) -> Placement:
    chance = random.Random(seed)
    return Placement(lambda: racks, racks.__getitem__, suspects.__contains__, chance, rules)


def on_one(names: str) -> dict[str, str]:
    return dict.fromkeys(names, DEFAULT_RACK)


def test_all_bookies_are_used_and_none_twice() -> None:
    used = set()
    for seed in range(50):
        found = placement(on_one("abcde"), seed).ensemble(Striping(3, 2, 2))
        assert len(set(found)) == 3
        used |= set(found)
    assert used == set("abcde")


def test_too_few_bookies() -> None:
    few = placement(on_one("ab"))
    assert few.has_enough(2)
    assert not few.has_enough(3)
    with pytest.raises(StorageFailed, match="needs 3 bookies, and 2 take writes"):
        few.ensemble(Striping(3, 2, 2))


@SEEDS
def test_each_write_quorum_has_two_racks(seed: int) -> None:
    racks = {name: f"/rack{i % 2}" for i, name in enumerate("abcdefgh")}
    striping = Striping(4, 2, 2)
    found = placement(racks, seed).ensemble(striping)
    for entry_id in range(4):
        assert len({racks[found[place]] for place in striping.write_set(entry_id)}) == 2


@SEEDS
def test_if_the_racks_do_not_suffice_it_goes_on(seed: int) -> None:
    racks = {"a": "/one", "b": "/one", "c": "/two"}
    assert len(set(placement(racks, seed).ensemble(Striping(3, 3, 2)))) == 3


@SEEDS
def test_a_suspect_is_chosen_only_if_there_is_no_other(seed: int) -> None:
    suspicious = placement(on_one("abcd"), seed, suspects="a")
    assert "a" not in suspicious.ensemble(Striping(3, 2, 2))
    assert "a" in suspicious.ensemble(Striping(4, 2, 2))


@SEEDS
def test_a_substitute_is_of_the_same_rack_or_else_of_another_than_the_neighbours(seed: int) -> None:
    racks = {"a": "/1", "b": "/2", "c": "/3", "x": "/2", "y": "/1", "z": "/4"}
    striping = Striping(3, 2, 2)
    assert placement(racks, seed).substitutes("abc", {1: "b"}, striping) == {1: "x"}
    del racks["x"]
    gone = {**racks, "b": "/2"}
    some = Placement(lambda: racks, gone.__getitem__, "".__contains__, random.Random(seed))
    assert some.substitutes("abc", {1: "b"}, striping) == {1: "z"}


def test_failed_bookies_do_not_replace_each_other_and_some_may_stay() -> None:
    some = placement(on_one("abcx"))
    found = some.substitutes("abc", {0: "a", 2: "c"}, Striping(3, 2, 2))
    assert found == {0: "x"}
    assert placement(on_one("abc")).substitutes("abc", {0: "a"}, Striping(3, 2, 2)) == {}


def test_a_suspect_is_a_substitute_only_if_asked_for() -> None:
    suspicious = placement(on_one("abcd"), suspects="d")
    striping = Striping(3, 3, 2)
    assert suspicious.substitutes("abc", {0: "a"}, striping) == {}
    assert suspicious.substitutes("abc", {0: "a"}, striping, suspects_too=True) == {0: "d"}


ENFORCED = RackRules(racks_min=2, enforced=True)


@SEEDS
def test_enforced_racks_are_in_each_write_quorum_or_there_is_no_ensemble(seed: int) -> None:
    striping = Striping(3, 3, 2)
    racks = {"a": "/one", "b": "/one", "c": "/one", "d": "/two"}
    strict = placement(racks, seed, rules=ENFORCED)
    assert "d" in strict.ensemble(striping)
    del racks["d"]
    with pytest.raises(StorageFailed, match="have 2 racks in each write quorum of 3"):
        strict.ensemble(striping)
    assert placement(racks, seed).ensemble(striping), "if it is not enforced, one does"
    del racks["c"]
    with pytest.raises(StorageFailed, match="and 2 take writes"):
        strict.ensemble(striping)


@SEEDS
def test_a_choice_without_a_way_on_is_made_again(seed: int) -> None:
    """One in /b third leaves no rack for the fourth, who stands next to /a and /b or /c."""
    racks = {"a1": "/a", "a2": "/a", "b": "/b", "c": "/c"}
    striping = Striping(4, 2, 2)
    found = placement(racks, seed, rules=ENFORCED).ensemble(striping)
    for entry_id in range(4):
        assert len({racks[found[place]] for place in striping.write_set(entry_id)}) == 2


@SEEDS
def test_a_substitute_leaves_the_racks_that_are_enforced(seed: int) -> None:
    racks = {"a": "/one", "b": "/two", "c": "/one", "x": "/one", "y": "/three"}
    strict = placement(racks, seed, suspects="y", rules=ENFORCED)
    striping = Striping(3, 3, 2)
    assert strict.substitutes("abc", {1: "b"}, striping) == {}, "/one alone is not enough"
    assert strict.substitutes("abc", {1: "b"}, striping, suspects_too=True) == {1: "y"}
    assert strict.substitutes("abc", {0: "a"}, striping) == {0: "x"}


@SEEDS
def test_the_last_and_the_first_share_a_write_quorum(seed: int) -> None:
    racks = {"a": "/1", "b": "/2", "c": "/1", "d": "/3", "x": "/3", "y": "/4"}
    gone = placement({**racks, "a": "/1"}, seed)
    assert gone.substitutes("abcd", {0: "a"}, Striping(4, 2, 2)) == {0: "y"}


@SEEDS
def test_without_awareness_all_are_as_if_in_one_rack(seed: int) -> None:
    racks = {"a": "/one", "b": "/one", "x": "/two"}
    rules = RackRules(aware=False, enforced=True)
    assert set(placement({"a": "/1", "b": "/1"}, seed, rules=rules).ensemble(Striping(2, 2, 2)))
    chosen = {placement(racks, seed, rules=rules).ensemble(Striping(2, 2, 2)) for seed in range(30)}
    assert {("a", "b"), ("b", "a")} & chosen
