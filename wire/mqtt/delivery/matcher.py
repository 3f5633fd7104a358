"""Finds the recipients of a message: the subscriptions of all connected sessions, by topic.

A session with several matching subscriptions gets a message once, with the highest of their QoS and
all their identifiers (3.3.4). Its own messages come only by subscriptions without No Local
[MQTT-3.8.3-3].

Invariant: the cache of recipients by topic is correct; any change of a subscription clears it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from magnetar.core.kernel.structs import FrozenStruct
from magnetar.wire.mqtt.matching.filter_tree import FilterTree
from magnetar.wire.mqtt.topics import CACHED_BYTES_MAX

TOPICS_MAX: Final = 16_384
"""Topics in the cache of recipients."""
GRANTS_MAX: Final = 1_024
"""Options of subscriptions that are kept once."""


SUBSCRIPTION_BYTES: Final = 500
LEVEL_BYTES: Final = 250
"""What a subscription, and each level of its filter, cost besides the filter's characters."""


def weight(filter: str) -> int:
    """The memory of a subscription to a filter, estimated."""
    return SUBSCRIPTION_BYTES + LEVEL_BYTES * filter.count("/") + 4 * len(filter)


STORED_BYTES: Final = 12
"""What a subscription costs in its session's record besides its filter."""


def stored_size(filter: str) -> int:
    """The size of a subscription in the record of its session, at most."""
    return STORED_BYTES + len(filter.encode())


class TopicSubscription(FrozenStruct, frozen=True):
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


class Match(FrozenStruct, Generic[Subscriber], frozen=True):
    """A session that gets the messages of a topic."""

    subscriber: Subscriber
    others: Grant
    """The options for messages of other clients."""
    own: Grant | None
    """The options for its own messages; None if it does not get them."""


class Matcher(Generic[Subscriber]):
    """See the module's docstring."""

    def __init__(self) -> None:
        self._tree: FilterTree[Subscriber, Match[Subscriber]] = FilterTree()
        self._known: dict[bytes, Sequence[Match[Subscriber]]] = {}
        self._grants: dict[tuple[int, bool, int], Grant] = {}
        """Those of subscriptions by their options: most have the same."""
        self.bytes = 0
        """Memory of the subscriptions, estimated."""

    @property
    def count(self) -> int:
        """The number of subscriptions."""
        return self._tree.count

    def add(self, subscriber: Subscriber, subscription: TopicSubscription) -> None:
        """Subscribe, or replace the subscription to that filter [MQTT-3.8.4-3]."""
        before = self._tree.count
        self._tree.add(subscription.filter, subscriber, self._match(subscriber, subscription))
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
            if len(topic) <= CACHED_BYTES_MAX:
                if len(self._known) >= TOPICS_MAX:
                    self._known.clear()
                self._known[topic] = found
        return found

    def _match(self, subscriber: Subscriber, subscription: TopicSubscription) -> Match[Subscriber]:
        options = subscription.qos, subscription.retain_as_published, subscription.identifier
        grant = self._grants.get(options)
        if grant is None:
            if len(self._grants) >= GRANTS_MAX:
                self._grants.clear()
            grant = self._grants[options] = _grant((subscription,))
        return Match(subscriber, grant, None if subscription.no_local else grant)

    def _found(self, topic: str) -> Sequence[Match[Subscriber]]:
        found: dict[Subscriber, Match[Subscriber]] = {}
        for held in self._tree.matching(topic):
            if found.keys().isdisjoint(held):
                found.update(held)
                continue
            for subscriber, match in held.items():
                before = found.get(subscriber)
                found[subscriber] = match if before is None else _joined(before, match)
        return list(found.values())


def _joined(one: Match[Subscriber], other: Match[Subscriber]) -> Match[Subscriber]:
    """What a session gets by both."""
    own = one.own if other.own is None else other.own
    if one.own is not None and other.own is not None:
        own = _both(one.own, other.own)
    return Match(one.subscriber, _both(one.others, other.others), own)


def _both(one: Grant, other: Grant) -> Grant:
    return Grant(
        max(one.qos, other.qos),
        one.retain_as_published or other.retain_as_published,
        one.identifiers + other.identifiers,
    )


def granted(matching: Sequence[TopicSubscription]) -> tuple[Grant, Grant | None]:
    """The options of a session for a message that all these subscriptions match: for messages of
    other clients, and for its own; None if it does not get these.
    """
    for_own = [one for one in matching if not one.no_local]
    return _grant(matching), _grant(for_own) if for_own else None


def _grant(matching: Sequence[TopicSubscription]) -> Grant:
    return Grant(
        max(one.qos for one in matching),
        any(one.retain_as_published for one in matching),
        tuple(one.identifier for one in matching if one.identifier),
    )
