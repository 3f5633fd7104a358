"""Who gets a message, and how."""

from __future__ import annotations

from magnetar.wire.mqtt.delivery.matcher import Grant, Match, Matcher, TopicSubscription


def matcher(*subscriptions: tuple[str, TopicSubscription]) -> Matcher[str]:
    made: Matcher[str] = Matcher()
    for subscriber, subscription in subscriptions:
        made.add(subscriber, subscription)
    return made


def test_overlapping_subscriptions_of_one_session_are_one_message() -> None:
    made = matcher(
        ("a", TopicSubscription("x/#", 0, identifier=7)),
        ("a", TopicSubscription("x/+", 2, retain_as_published=True)),
        ("a", TopicSubscription("+/y", 1, identifier=9)),
        ("b", TopicSubscription("x/y", 1)),
        ("c", TopicSubscription("z", 1)),
    )
    targets = {one.subscriber: one for one in made.targets(b"x/y")}
    assert targets.keys() == {"a", "b"}
    qos, as_published, identifiers = targets["a"].others
    assert (qos, as_published, set(identifiers)) == (2, True, {7, 9})
    assert targets["b"] == Match("b", Grant(1, False, ()), Grant(1, False, ()))


def test_what_it_has_published_itself_comes_without_no_local_alone() -> None:
    (only,) = matcher(("a", TopicSubscription("x", 1, no_local=True))).targets(b"x")
    assert only.own is None
    (both,) = matcher(
        ("a", TopicSubscription("x", 2, no_local=True, identifier=1)),
        ("a", TopicSubscription("+", 0, identifier=2)),
    ).targets(b"x")
    assert (both.others.qos, both.own) == (2, Grant(0, False, (2,)))


def test_a_change_is_seen_at_once() -> None:
    made = matcher(("a", TopicSubscription("x", 0)))
    assert len(made.targets(b"x")) == 1
    made.add("b", TopicSubscription("x", 0))
    made.add("a", TopicSubscription("x", 1))
    assert {one.subscriber: one.others.qos for one in made.targets(b"x")} == {"a": 1, "b": 0}
    made.remove("a", "x")
    made.remove("a", "x")
    made.remove("b", "y")
    assert [one.subscriber for one in made.targets(b"x")] == ["b"]
    assert made.count == 1


def test_only_some_topics_are_remembered() -> None:
    made = matcher(("a", TopicSubscription("#", 0)))
    for number in range(20_000):
        assert len(made.targets(b"%d" % number)) == 1
    assert len(made._known) < 20_000
