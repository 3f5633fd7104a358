"""Which topic stores which MQTT topics: rules, the first that fits decides. Pure.

A rule sends all MQTT topics that match its filter to one topic, whose messages have the MQTT topic
as their key (a funnel), or each of them to one of its own (`EACH`, see `names.py`). Without rules
of the operator's all go to one topic, `mqtt`: a fleet with 100,000 device topics is one log with
100,000 keys, as its readers in Pulsar and Kafka want it, and not 100,000 logs.

    filter           topic
    orders/#         orders             a funnel of its own
    legacy/+         {each}             as MoP has it
    #                mqtt               the default, always there

A subscription reads the funnels whose rules may send something to it, and the topics of its
namespace that `EACH` has made.

Invariant: an MQTT topic is stored in one place, which depends on the rules and nothing else. What
was stored before a rule changed stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.wire.mqtt.mapping import names
from magnetar.wire.mqtt.topics import is_filter

EACH: Final = "{each}"
"""As a rule's topic: one for each MQTT topic."""
CACHED_MAX: Final = 16_384


class MappingRule(Struct, frozen=True):
    """One line of the table above. The topic is a name in the rule's namespace, or a full one."""

    filter: str
    topic: str


DEFAULT: Final = MappingRule("#", "mqtt")


class Sources(Struct, frozen=True):
    """Where the messages for a filter are."""

    funnels: tuple[TopicName, ...]
    each: bool
    """Also in topics of their own, as far as their names match."""


class Rules:
    """The rules of one namespace."""

    def __init__(self, namespace: NamespaceName, rules: Sequence[MappingRule] = ()) -> None:
        self.namespace = namespace
        self.rules = (*rules, DEFAULT)
        self._targets = [self._target(rule) for rule in self.rules]
        self._cached: dict[str, TopicName] = {}

    def _target(self, rule: MappingRule) -> TopicName | None:
        if not is_filter(rule.filter):
            raise InvalidName(f"{rule.filter!r} is no topic filter")
        if rule.topic == EACH:
            return None
        full = rule.topic if "/" in rule.topic else f"{self.namespace}/{rule.topic}"
        name = TopicName.parse(full)
        if not name.persistent:
            raise InvalidName(f"{rule.topic} keeps nothing: MQTT's messages are stored")
        return name

    def topic_for(self, topic: str) -> TopicName:
        """Where messages of an MQTT topic are stored; raises `InvalidName`."""
        found = self._cached.get(topic)
        if found is None:
            found = self._found(topic)
            if len(self._cached) >= CACHED_MAX:
                self._cached.clear()
            self._cached[topic] = found
        return found

    def _found(self, topic: str) -> TopicName:
        if not names.is_explicit(topic):
            for rule, target in zip(self.rules, self._targets, strict=True):
                if covers(rule.filter, topic):
                    return names.topic_name(topic, self.namespace) if target is None else target
        return names.topic_name(topic, self.namespace)

    def sources(self, filter: str) -> Sources:
        """Where messages that match a filter may be."""
        if names.is_explicit(filter):
            return Sources((), each=True)
        funnels: dict[TopicName, None] = {}
        each = False
        for rule, target in zip(self.rules, self._targets, strict=True):
            if overlap(rule.filter, filter):
                if target is None:
                    each = True
                else:
                    funnels[target] = None
            if covers(rule.filter, filter):
                break  # nothing is left for the rules behind it
        return Sources(tuple(funnels), each)


def overlap(one: str, other: str) -> bool:
    """Whether a name may match both filters."""
    left, right = one.split("/"), other.split("/")
    for place in range(max(len(left), len(right)) + 1):
        here = left[place] if place < len(left) else None
        there = right[place] if place < len(right) else None
        if here == "#" or there == "#":
            return True
        if here is None or there is None:
            return here is there
        if here != there and "+" not in (here, there):
            return False
    return True


def covers(one: str, other: str) -> bool:
    """Whether each name that matches `other` matches `one`, too. A rule's wildcards stand for
    levels that begin with `$` as well: else such topics would be stored nowhere.
    """
    left, right = one.split("/"), other.split("/")
    for place, level in enumerate(left):
        if level == "#":
            return True
        if place == len(right) or right[place] == "#":
            return False
        if level not in ("+", right[place]):
            return False
    return len(left) == len(right)
