"""Names, filters, and which match: the examples of the specification (4.7), and more."""

from __future__ import annotations

import pytest

from magnetar.wire.mqtt.topics import SharedFilter, is_filter, is_name, matches, shared

GOOD = ["sport/tennis/player1", "/", "a b", "$SYS/x", "a//b", "Ω", "x" * 65_535]
BAD_NAMES = ["", "a/#", "+", "a+b", "x" * 65_536, "/" * 128]


@pytest.mark.parametrize("name", GOOD)
def test_names(name: str) -> None:
    assert is_name(name)
    assert is_filter(name)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_what_is_no_name(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize("filter", ["#", "+", "sport/#", "+/+", "/+", "+/tennis/#", "a/+/b", "/#"])
def test_filters(filter: str) -> None:
    assert is_filter(filter)


@pytest.mark.parametrize("filter", ["", "sport#", "a/#/b", "sport+", "+a", "a/b+/c", "##", "#/"])
def test_what_is_no_filter(filter: str) -> None:
    assert not is_filter(filter)


@pytest.mark.parametrize(
    ("filter", "topic", "fits"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "a/b", True),
        ("#", "$SYS/x", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/x", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("a/+", "a/$b", True),
        ("ACCOUNTS", "Accounts", False),
        ("a/b/c", "a/b", False),
        ("a/b", "a/b/c", False),
    ],
)
def test_matching(filter: str, topic: str, fits: bool) -> None:
    assert matches(filter, topic) is fits


def test_shared_subscriptions() -> None:
    assert shared("$share/g/a/+") == SharedFilter("g", "a/+")
    assert shared("$share/g//a") == SharedFilter("g", "/a")
    assert shared("$SYS/share/g") is None


@pytest.mark.parametrize("text", ["$share/", "$share/g", "$share//a", "$share/+/a", "$share/g/"])
def test_what_is_no_shared_subscription(text: str) -> None:
    with pytest.raises(ValueError, match="shared"):
        shared(text)
