"""Which bookies are chosen."""

import random
from collections.abc import Collection

import pytest

from magnetar.bookie.client.quorum.placement import DEFAULT_RACK, Placement
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.core.kernel.errors import StorageFailed

SEEDS = pytest.mark.parametrize("seed", range(20))


def placement(
    racks: dict[str, str], seed: int = 0, suspects: Collection[str] = (), racks_min: int = 2
) -> Placement:
    chance = random.Random(seed)
    return Placement(lambda: racks, racks.__getitem__, suspects.__contains__, chance, racks_min)


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
