"""The subscriptions of a session: what has changed since its record was stored, and grants."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.delivery.matcher import Grant, TopicSubscription, stored_size
from magnetar.wire.mqtt.delivery.session_subscriptions import (
    CHANGED_BYTES_MAX,
    GRANTS_MAX,
    SessionSubscriptions,
)

LARGE = "x" * CHANGED_BYTES_MAX
"""A filter that makes the record a large one."""


def large() -> SessionSubscriptions:
    """With a record that is stored."""
    found = SessionSubscriptions()
    found.add(TopicSubscription(LARGE, 1))
    found.stored_whole()
    return found


names = st.text("ab+/", min_size=1, max_size=200)


@given(st.lists(st.tuples(names, st.integers(-1, 2) | st.just(9))))
def test_the_record_and_the_changes_are_all_there_is(steps: list[tuple[str, int]]) -> None:
    """-1 unsubscribes, 9 stores the record."""
    found = large()
    stored = dict(found.by_filter)
    for filter, qos in steps:
        before = set(found.by_filter)
        if qos == 9:
            found.stored_whole()
            stored = dict(found.by_filter)
        elif qos < 0:
            assert found.remove(filter) is (filter in before)
        else:
            found.add(TopicSubscription(filter, qos))
        assert found.size == sum(map(stored_size, found.by_filter))
        if found.changed is None:
            found.stored_whole()
            stored = dict(found.by_filter)
        restored = dict(stored)
        for changed, one in found.changes():
            if one is None:
                restored.pop(changed, None)
            else:
                restored[changed] = one
        assert restored == found.by_filter
        assert sum(map(stored_size, found.changed or ())) <= CHANGED_BYTES_MAX


def test_a_small_record_is_stored_whole() -> None:
    found = SessionSubscriptions()
    assert found.changed is None, "it was never stored"
    found.stored_whole()
    assert found.add(TopicSubscription("a", 1))
    assert found.changed is None


def test_what_could_not_be_stored_is_stored_whole() -> None:
    found = large()
    assert found.add(TopicSubscription("a", 1))
    assert list(found.changes()) == [("a", TopicSubscription("a", 1))]
    found.not_stored()
    assert found.changed is None


def test_the_same_subscription_again_is_no_change() -> None:
    found = large()
    assert not found.add(TopicSubscription(LARGE, 1))
    assert not found.remove("b")
    assert found.changed == {}
    found.add(TopicSubscription("a", 1))
    found.stored_whole()
    assert not found.add(TopicSubscription("a", 2)), "replaced, not new"
    assert list(found.changes()) == [("a", TopicSubscription("a", 2))]


def test_grants_follow_the_subscriptions() -> None:
    found = SessionSubscriptions()
    assert found.grant_of(b"a", own=False) is None
    found.add(TopicSubscription("a", 1, no_local=True))
    assert found.grant_of(b"a", own=False) == Grant(1, False, ())
    assert found.grant_of(b"a", own=True) is None
    found.add(TopicSubscription("+", 0, identifier=7))
    assert found.grant_of(b"a", own=False) == Grant(1, False, (7,))
    assert found.grant_of(b"a", own=True) == Grant(0, False, (7,))
    found.remove("a")
    for number in range(GRANTS_MAX + 1):
        assert found.grant_of(b"%d" % number, own=True) == Grant(0, False, (7,))
