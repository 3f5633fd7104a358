"""MoP's names, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.wire.mqtt.mapping.names import (
    full_topic,
    is_explicit,
    mqtt_topic,
    namespace_of,
    publisher,
    publisher_prefix,
    topic_name,
)

HOME = NamespaceName.parse("public/default")
OTHER = NamespaceName.parse("t/n")


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("/a/b/c", "persistent://public/default/%2Fa%2Fb%2Fc"),
        ("a b*", "persistent://public/default/a+b*"),
        ("ä~+", "persistent://public/default/%C3%A4%7E%2B"),
        ("persistent://t/n/a/b", "persistent://t/n/a%2Fb"),
        ("non-persistent://t/n/a", "non-persistent://t/n/a"),
    ],
)
def test_examples(topic: str, name: str) -> None:
    assert topic_name(topic, HOME).full == name
    assert mqtt_topic(TopicName.parse(name), HOME) == topic


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1,
               max_size=60))  # fmt: skip
def test_there_and_back(topic: str) -> None:
    for home in (HOME, OTHER):
        try:
            name = topic_name(topic, home)
        except InvalidName:
            continue
        assert mqtt_topic(name, home) == topic
        assert topic_name(mqtt_topic(name, OTHER) or "", OTHER) == name
        assert topic_name(full_topic(name), OTHER) == name


@pytest.mark.parametrize("local", ["a~b", "a%2fb", "a b", "%", "%ff"])
def test_names_that_mqtt_cannot_address(local: str) -> None:
    assert mqtt_topic(TopicName.parse(f"persistent://public/default/{local}"), HOME) is None


@pytest.mark.parametrize("topic", ["persistent://", "persistent://t", "persistent://t/n",
                                   "persistent://t/n/", "persistent:///n/a"])  # fmt: skip
def test_what_names_no_topic(topic: str) -> None:
    assert is_explicit(topic)
    with pytest.raises(InvalidName):
        topic_name(topic, HOME)


def test_the_namespace_of_a_filter() -> None:
    assert namespace_of("a/#", HOME) == HOME
    assert namespace_of("persistent://t/n/#", HOME) == OTHER
    with pytest.raises(InvalidName):
        namespace_of("persistent://t/+/#", HOME)


def test_publishers_of_two_listeners() -> None:
    log = TopicName.parse("persistent://t/n/x")
    foreign = publisher_prefix(log, HOME)
    assert publisher(publisher_prefix(log, OTHER), "c") == b"c"
    assert publisher(foreign, "c") == b"public/default\0c"
    assert len(publisher(foreign, "c" * 65_535)) == 65_535
