"""What follows from a declaration."""

from typing import Annotated, Any, ClassVar

import msgspec
import pytest
from msgspec import Struct

from magnetar.core.policy.declaration import Levels, Policy, Scope, levels_of
from magnetar.core.policy.policies import Effective


class Small(Struct, frozen=True, kw_only=True):
    """One policy of each sort."""

    STORED: ClassVar[tuple[Policy, ...]] = (
        Policy(name="kept", kind=int, loose=True, namespace=Scope("keptHere")),
    )
    size: Annotated[
        int, Policy("Small.", Scope("topicSize"), Scope("size_of"), ("a", "b"), max)
    ] = 1
    table: Annotated[
        dict[str, int], Policy("", Scope("t", initial={}), Scope("n", initial={}), merged=True)
    ] = {}
    speed: Annotated[int, Policy("", namespace=Scope("speed"), per_cluster=True, loose=True)] = 0


class Two(Struct):
    """Two settings."""

    a: int = 4
    b: int = 7


LEVELS = Levels(Small)


def force(namespace: dict[str, Any], topic: dict[str, Any], cluster: str = "here") -> Small:
    return LEVELS.in_force(Small(), LEVELS.namespace(**namespace), LEVELS.topic(**topic), cluster)


def test_a_field_gives_its_name_type_and_default() -> None:
    size, table, speed, kept = LEVELS.policies
    assert [one.name for one in LEVELS.effective] == ["size", "table", "speed"]
    assert (size.kind, size.default, kept.name) == (int, 1, "kept")
    assert [policy.name for policy, _ in LEVELS.at("topic")] == ["size", "table"]
    assert [policy.name for policy, _ in LEVELS.at("namespace")] == [
        one.name for one in (size, table, speed, kept)
    ]


def test_records_have_pulsars_names() -> None:
    assert msgspec.json.encode(LEVELS.topic(size=3)) == b'{"topicSize":3}'
    shown = msgspec.to_builtins(LEVELS.namespace(size=3))
    assert shown.keys() >= {"size_of", "n", "speed", "keptHere", "auth_policies", "properties"}


def test_only_what_is_loose_is_stored_unread() -> None:
    assert msgspec.convert({"keptHere": "x"}, LEVELS.namespace).kept == "x"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"size_of": "x"}, LEVELS.namespace)


def test_the_nearest_level_wins() -> None:
    assert force({}, {}) == Small()
    assert force({"size": 2}, {}).size == 2
    assert force({"size": 2}, {"size": 0}).size == 0


def test_tables_are_merged_and_clusters_told_apart() -> None:
    assert force({"table": {"a": 1, "b": 1}}, {"table": {"b": 2}}).table == {"a": 1, "b": 2}
    assert force({"speed": {"here": 5}}, {}).speed == 5
    assert force({"speed": {"here": 5}}, {}, "elsewhere").speed == 0


def test_a_default_is_made_from_its_settings() -> None:
    assert LEVELS.effective[0].configured(Two()) == 7


def test_a_path_is_the_stored_name_unless_it_is_given() -> None:
    assert Scope("a").paths == ["a"]
    assert Scope("a", ("b", "c")).paths == ["b", "c"]
    assert Scope("a", None).paths == []


@pytest.mark.parametrize("level", ["topic", "namespace"])
def test_no_two_policies_share_a_name_or_a_path(level: str) -> None:
    scopes = [scope for _, scope in levels_of(Effective).at(level)]
    paths = [path for scope in scopes for path in scope.paths]
    assert len({scope.stored for scope in scopes}) == len(scopes)
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("policy", levels_of(Effective).policies, ids=lambda policy: policy.name)
def test_each_says_what_it_does_or_why_it_does_nothing(policy: Policy) -> None:
    assert bool(policy.effect) != bool(policy.reason)
