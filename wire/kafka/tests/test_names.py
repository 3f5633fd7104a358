"""What clients call topics."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import InvalidName
from magnetar.wire.kafka.names import called, new_topic_of, topic_of


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("t", "persistent://public/default/t"),
        ("a/b/t", "persistent://a/b/t"),
        ("persistent://a/b/t", "persistent://a/b/t"),
        ("public/default/t", "persistent://public/default/t"),
    ],
)
def test_names_and_back(text: str, full: str) -> None:
    name = topic_of(text)
    assert name.full == full
    assert topic_of(called(name)) == name


@pytest.mark.parametrize("text", ["", "a/b", "non-persistent://public/default/t"])
def test_what_is_no_topic_here(text: str) -> None:
    with pytest.raises(InvalidName):
        topic_of(text)


@pytest.mark.parametrize("text", ["t", "a.b_c-D9", "a/b/t", "x" * 249])
def test_what_may_be_made(text: str) -> None:
    assert called(new_topic_of(text)) == text


@pytest.mark.parametrize("text", [".", "..", "a b", "a:b", "\u00fc", "x" * 250, "t-partition-0"])
def test_what_may_not(text: str) -> None:
    with pytest.raises(InvalidName):
        new_topic_of(text)
