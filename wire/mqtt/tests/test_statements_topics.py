"""Normative statements about topic names and filters (4.7 and 4.8), by their numbers.

The statements are listed in docs/mqtt-statements.md. Each is checked with the plain comparison and
with both trees.
"""

from __future__ import annotations

import pytest

from magnetar.wire.mqtt.matching.filter_tree import FilterTree
from magnetar.wire.mqtt.matching.name_tree import NameTree
from magnetar.wire.mqtt.topics import SharedFilter, is_filter, is_name, matches, shared


def match(filter: str, name: str) -> bool:
    """Whether they match; all three ways must agree."""
    filters: FilterTree[int, None] = FilterTree()
    filters.add(filter, 1, None)
    names: NameTree[int] = NameTree()
    names.set(name, 1)
    found = {
        matches(filter, name),
        bool(list(filters.match(name))),
        bool(list(names.match(filter))),
    }
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("wildcard", ["#", "+"])
@pytest.mark.parametrize("around", ["{}", "a/{}", "{}/a", "a/{}/b", "a{}", "{}a", "a/b{}c"])
def test_wildcards_are_not_in_names(wildcard: str, around: str) -> None:
    """[MQTT-4.7.0-1], [MQTT-4.7.1-1 of 3.1.1]"""
    assert is_name(around.format("x"))
    assert not is_name(around.format(wildcard))


@pytest.mark.parametrize("filter", ["#", "a/#", "/#", "a//#", "+/#", "$SYS/#"])
def test_a_multi_level_wildcard_is_the_last_level(filter: str) -> None:
    """[MQTT-4.7.1-1], [MQTT-4.7.1-2 of 3.1.1]"""
    assert is_filter(filter)
    for bad in (filter + "/a", filter + "/", filter + "#", filter + "a", filter + "+"):
        assert not is_filter(bad)
    assert not is_filter("a" + filter[filter.rindex("#") :])


@pytest.mark.parametrize("filter", ["+", "+/a", "a/+", "a/+/b", "+/+", "/+", "+/", "a/+/#"])
def test_a_single_level_wildcard_is_a_whole_level(filter: str) -> None:
    """[MQTT-4.7.1-2], [MQTT-4.7.1-3 of 3.1.1]: at any place."""
    assert is_filter(filter)
    for bad in ("a+", "+a", "++", "a+b"):
        assert not is_filter(filter.replace("+", bad, 1))


def test_what_wildcards_match() -> None:
    """[MQTT-4.7.1-1], [MQTT-4.7.1-2]; [MQTT-4.7.1-2 of 3.1.1], [MQTT-4.7.1-3 of 3.1.1]: `#` any
    number of levels, and the parent; `+` exactly one, which may be empty.
    """
    assert match("a/#", "a")
    assert match("a/#", "a/")
    assert match("a/#", "a/b/c")
    assert not match("a/#", "ab")
    assert not match("a/b/#", "a")
    assert match("a/+", "a/b")
    assert match("a/+", "a/")
    assert not match("a/+", "a")
    assert not match("a/+", "a/b/c")
    assert match("+/+", "/a")
    assert not match("+", "/a")
    assert match("+/b/#", "a/b")


@pytest.mark.parametrize("filter", ["#", "+", "+/monitor", "+/#", "+/+", "/#"])
def test_wildcards_at_the_begin_do_not_match_dollar_topics(filter: str) -> None:
    """[MQTT-4.7.2-1 of both]"""
    for name in ("$SYS", "$SYS/monitor", "$", "$x/y"):
        assert not match(filter, name)


def test_dollar_topics_are_matched_by_their_name() -> None:
    """The other side of [MQTT-4.7.2-1 of both]: only the first level counts."""
    assert match("$SYS/#", "$SYS/monitor")
    assert match("$SYS/+", "$SYS/monitor")
    assert match("#", "a/$b")
    assert match("+", "a$")
    assert match("a/+", "a/$b")


def test_names_and_filters_are_not_empty() -> None:
    """[MQTT-4.7.3-1 of both]: a slash, or a space, is enough."""
    assert not is_name("")
    assert not is_filter("")
    for shortest in ("a", "/", " "):
        assert is_name(shortest)
        assert is_filter(shortest)


@pytest.mark.parametrize("character", ["a", "é", "€", "\U0001f600"], ids=ascii)
def test_names_and_filters_have_65535_bytes_at_most(character: str) -> None:
    """[MQTT-4.7.3-3 of both]: bytes of UTF-8, not characters."""
    count, rest = divmod(65_535, len(character.encode()))
    longest = character * count + "x" * rest
    assert len(longest.encode()) == 65_535
    assert is_name(longest)
    assert is_filter(longest)
    assert not is_name(longest + "x")
    assert not is_filter(longest + "x")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("caf\u00e9", "cafe\u0301"),  # composed and decomposed
        ("\u212b", "\u00c5"),  # the sign and the letter
        ("\ufb01n", "fin"),  # a ligature
        ("Accounts", "ACCOUNTS"),
        ("stra\u00dfe", "strasse"),
        ("a", "a/"),
        ("a", "/a"),
        ("a//b", "a/b"),
        ("a/./b", "a/b"),
        ("a/../b", "b"),
        ("a%2Fb", "a/b"),
        ("a b", "a\u00a0b"),
        ("a", "a "),
        ("a", "\ufeffa"),
    ],
    ids=ascii,
)
def test_names_and_filters_are_compared_as_they_are(one: str, other: str) -> None:
    """[MQTT-4.7.3-4 of both]"""
    assert match(one, one)
    assert match(other, other)
    assert not match(one, other)
    assert not match(other, one)
    assert match(f"{one}/#", f"{one}/x")
    assert not match(f"{one}/x", f"{other}/x")


# -- shared subscriptions -------------------------------------------------------------------------


def test_a_shared_filter_begins_with_share_and_a_name() -> None:
    """[MQTT-4.8.2-1]: a name of one character is enough; other prefixes are filters like others."""
    assert shared("$share/g/a") == SharedFilter("g", "a")
    for plain in ("$SHARE/g/a", "$share", "/$share/g/a", "$shared/g/a", "a/$share/g/a"):
        assert shared(plain) is None
    for bad in ("$share/", "$share//a", "$share//"):
        with pytest.raises(ValueError, match="no shared subscription"):
            shared(bad)


@pytest.mark.parametrize("name", ["+", "#", "a+", "#a", "a#b", "+a"])
def test_a_share_name_has_no_wildcards(name: str) -> None:
    """[MQTT-4.8.2-2]; a slash ends the name."""
    with pytest.raises(ValueError, match="no shared subscription"):
        shared(f"$share/{name}/a")
    assert shared("$share/a/b/c") == SharedFilter("a", "b/c")


@pytest.mark.parametrize("rest", ["", "/", "/a#", "/#/a", "/a+", "/a/#/b"])
def test_a_share_name_is_followed_by_a_slash_and_a_filter(rest: str) -> None:
    """[MQTT-4.8.2-2]"""
    with pytest.raises(ValueError, match="no shared subscription"):
        shared(f"$share/group{rest}")
    assert shared("$share/group//") == SharedFilter("group", "/")
    assert shared("$share/group/+/#") == SharedFilter("group", "+/#")
