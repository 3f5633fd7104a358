"""Subjects and what has their schemas."""

import pytest

from magnetar.core.kernel.errors import Invalid
from magnetar.core.kernel.names import TopicName
from magnetar.core.schema.records import Subject
from magnetar.core.schema.subjects import HOME, named, namespace_of, subject_of


@pytest.mark.parametrize("topic", ["t", "a/b/t", "t-key", "t-value", "\u00fc"])
def test_values_of_topics(topic: str) -> None:
    name = named(f"{topic}-value")
    assert name == TopicName.parse(topic)
    assert subject_of(name) == f"{topic}-value"


def test_values_of_a_partition_are_those_of_its_topic() -> None:
    assert named("t-partition-3-value") == TopicName.parse("t")


@pytest.mark.parametrize("text", ["t-key", "org.example.Order", "-value", "a/b-value", "value"])
def test_all_others_belong_to_no_topic(text: str) -> None:
    assert named(text) == Subject(text)
    assert subject_of(Subject(text)) == text
    assert namespace_of(Subject(text)) == HOME


def test_who_decides_for_a_topic() -> None:
    assert str(namespace_of(named("a/b/t-value"))) == "a/b"


def test_the_context_without_a_name() -> None:
    assert named(":.:t-value") == TopicName.parse("t")
    assert named(":.:t-key") == Subject("t-key")
    assert named(":t-key") == Subject(":t-key")


@pytest.mark.parametrize(
    "text", ["", "a\nb", "a" * 600, ":.:", ":.ctx:a", ":.ctx", ":.:" + ":.a:b"]
)
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(Invalid):
        named(text)
