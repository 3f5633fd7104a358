"""Finds the recipients of a message: the subscriptions of all connected sessions, by topic.

A session with several matching subscriptions gets a message once, with the highest of their QoS and
all their identifiers (3.3.4). Its own messages come only by subscriptions without No Local
[MQTT-3.8.3-3].

Invariant: the cache of recipients by topic is correct; any change of a subscription clears it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from magnetar.wire.mqtt.codec.publishes import NAME_BYTES_MAX
from magnetar.wire.mqtt.matching.filter_tree import FilterTree

TOPICS_MAX: Final = 16_384
"""Topics in the cache of recipients."""


SUBSCRIPTION_BYTES: Final = 500
LEVEL_BYTES: Final = 250
"""What a subscription, and each level of its filter, cost besides the filter's characters."""


def weight(filter: str) -> int:
    """The memory of a subscription to a filter, estimated."""
    return SUBSCRIPTION_BYTES + LEVEL_BYTES * filter.count("/") + 4 * len(filter)


class TopicSubscription(Struct, frozen=True):
    """A subscription that is not shared (3.8.3.1)."""

    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0
    """0 for none."""


class Grant(NamedTuple):
    """The options with which a session gets a message."""

    qos: int
    """The maximum QoS."""
    retain_as_published: bool
    identifiers: tuple[int, ...]


Subscriber = TypeVar("Subscriber")


class Match(NamedTuple, Generic[Subscriber]):
    """A session that gets the messages of a topic."""

    subscriber: Subscriber
    others: Grant
    """The options for messages of other clients."""
    own: Grant | None
    """The options for its own messages; None if it does not get them."""


class Matcher(Generic[Subscriber]):
    """See the module's docstring."""

    def __init__(self) -> None:
        self._tree: FilterTree[Subscriber, TopicSubscription] = FilterTree()
        self._known: dict[bytes, Sequence[Match[Subscriber]]] = {}
        self.bytes = 0
        """Memory of the subscriptions, estimated."""

    @property
    def count(self) -> int:
        """The number of subscriptions."""
        return self._tree.count

    def add(self, subscriber: Subscriber, subscription: TopicSubscription) -> None:
        """Subscribe, or replace the subscription to that filter [MQTT-3.8.4-3]."""
        before = self._tree.count
        self._tree.add(subscription.filter, subscriber, subscription)
        if self._tree.count > before:
            self.bytes += weight(subscription.filter)
        self._known.clear()

    def remove(self, subscriber: Subscriber, filter: str) -> None:
        if self._tree.remove(filter, subscriber):
            self.bytes -= weight(filter)
            self._known.clear()

    def targets(self, topic: bytes) -> Sequence[Match[Subscriber]]:
        """The recipients of the messages of a topic."""
        found = self._known.get(topic)
        if found is None:
            found = self._found(topic.decode())
            if len(topic) <= NAME_BYTES_MAX:
                if len(self._known) >= TOPICS_MAX:
                    self._known.clear()
                self._known[topic] = found
        return found

    def _found(self, topic: str) -> Sequence[Match[Subscriber]]:
        by_subscriber: dict[Subscriber, list[TopicSubscription]] = {}
        for subscriber, subscription in self._tree.match(topic):
            by_subscriber.setdefault(subscriber, []).append(subscription)
        return [target(subscriber, found) for subscriber, found in by_subscriber.items()]


def target(subscriber: Subscriber, matching: Sequence[TopicSubscription]) -> Match[Subscriber]:
    """The options of a session for a message that all these subscriptions match."""
    for_own = [one for one in matching if not one.no_local]
    return Match(subscriber, _grant(matching), _grant(for_own) if for_own else None)


def _grant(matching: Sequence[TopicSubscription]) -> Grant:
    return Grant(
        max(one.qos for one in matching),
        any(one.retain_as_published for one in matching),
        tuple(one.identifier for one in matching if one.identifier),
    )
