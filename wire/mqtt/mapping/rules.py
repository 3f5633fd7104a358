"""The rules that map MQTT topics to the topics that store them. Pure.

The first rule whose filter matches applies. It maps all its MQTT topics to one topic, whose
messages have the MQTT topic as their key (a funnel), or each to a topic of its own (`EACH`, see
`names.py`). The default is one funnel, `mqtt`: a fleet with 100,000 device topics is one log with
100,000 keys, as readers in Pulsar and Kafka expect, and not 100,000 logs.

    filter           topic
    orders/#         orders             a funnel
    legacy/+         {each}             one to one, as in MoP
    #                mqtt               the default, always the last rule

A subscription reads the funnels whose rules may match its filter, and the topics of its namespace
that `EACH` has created.

When the rules change, messages stored before stay where they are (`clients/rule_changes.py`). A
topic that a rule has named stays one whose keys are MQTT topics.

Invariant: the rules alone determine where an MQTT topic is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import SYSTEM_NAMESPACE, NamespaceName, TopicName
from magnetar.wire.mqtt.mapping import names
from magnetar.wire.mqtt.topics import (
    CACHED_BYTES_MAX,
    LEVELS_MAX,
    SYS,
    is_deep,
    is_filter,
    is_sys,
)

EACH: Final = "{each}"
"""The topic of a rule that maps each MQTT topic to one of its own."""
CACHED_MAX: Final = 16_384


class MappingRule(Struct, frozen=True):
    """A rule. Its topic is a local name in the namespace of the rules, or a full name."""

    filter: str
    topic: str


DEFAULT: Final = MappingRule("#", "mqtt")


class Sources(Struct, frozen=True):
    """The topics that may have messages for a filter."""

    funnels: tuple[TopicName, ...]
    each: bool
    """Whether topics of `EACH` whose names match have messages, too."""


class Rules:
    """The rules of one namespace."""

    def __init__(
        self,
        namespace: NamespaceName,
        rules: Sequence[MappingRule] = (),
        former: Sequence[TopicName] = (),
        *,
        confined: bool = False,
    ) -> None:
        """`former` are the topics that earlier rules have named. Clients that are confined can
        name no other namespace.
        """
        self.namespace = namespace
        self._confined = confined
        self.rules = (*rules, DEFAULT)
        self._targets = [self._target(rule) for rule in self.rules]
        self._cached: dict[str, TopicName] = {}
        self._keyed = frozenset((*self.funnels, *former))

    def _target(self, rule: MappingRule) -> TopicName | None:
        if not is_filter(rule.filter):
            raise InvalidName(f"{rule.filter!r} is no topic filter")
        if rule.topic == EACH:
            return None
        full = rule.topic if "/" in rule.topic else f"{self.namespace}/{rule.topic}"
        name = TopicName.parse(full)
        if not name.persistent:
            raise InvalidName(f"{rule.topic} keeps nothing: MQTT's messages are stored")
        self._check(name)
        return name

    def _check(self, name: TopicName) -> None:
        if name.internal:
            raise InvalidName(f"{name} is the server's own")
        self._check_namespace(name.namespace)

    def _check_namespace(self, namespace: NamespaceName) -> None:
        if str(namespace) == SYSTEM_NAMESPACE:
            raise InvalidName(f"{namespace} is the server's own")
        if self._confined and namespace != self.namespace:
            raise InvalidName(f"{namespace} is not the namespace of this listener")

    def topic_for(self, topic: str) -> TopicName:
        """The topic that stores an MQTT topic; raises `InvalidName`."""
        found = self._cached.get(topic)
        if found is None:
            found = self._found(topic)
            if len(topic) <= CACHED_BYTES_MAX:
                if len(self._cached) >= CACHED_MAX:
                    self._cached.clear()
                self._cached[topic] = found
        return found

    def _found(self, topic: str) -> TopicName:
        if is_sys(topic):
            raise InvalidName(f"{topic!r}: topics below {SYS} are the server's own")
        if is_deep(topic):
            raise InvalidName(f"a topic has at most {LEVELS_MAX} levels")
        if not names.is_explicit(topic):
            for rule, target in zip(self.rules, self._targets, strict=True):
                if covers(rule.filter, topic):
                    return names.topic_name(topic, self.namespace) if target is None else target
        name = names.topic_name(topic, self.namespace)
        self._check(name)
        return name

    def followed_by(self, rules: Sequence[MappingRule]) -> Rules:
        """The next rules, which know the topics of these."""
        return self.others(rules, self.all_funnels)

    def others(self, rules: Sequence[MappingRule], former: Sequence[TopicName] = ()) -> Rules:
        """Other rules for the same listeners."""
        return Rules(self.namespace, rules, former, confined=self._confined)

    @property
    def targets(self) -> Sequence[TopicName | None]:
        """The topic of each rule; None for `EACH`."""
        return self._targets

    @property
    def funnels(self) -> Sequence[TopicName]:
        """The topics that rules name."""
        return tuple(dict.fromkeys(name for name in self._targets if name is not None))

    @property
    def all_funnels(self) -> Sequence[TopicName]:
        """Those, and the ones of earlier rules."""
        return sorted(self._keyed, key=str)

    @property
    def has_each(self) -> bool:
        """Whether a rule gives MQTT topics logs of their own."""
        return None in self._targets

    def is_single(self, name: TopicName) -> bool:
        """Whether this topic stores one MQTT topic only."""
        if not self.has_each or not name.persistent or name.internal or self.is_funnel(name):
            return False
        own = names.mqtt_topic(name, self.namespace)
        return own is not None and not is_sys(own) and self.topic_for(own) == name

    def is_funnel(self, name: TopicName) -> bool:
        """Whether a rule sends many MQTT topics to this topic."""
        return name in self._targets

    def has_keys(self, name: TopicName) -> bool:
        """Whether keys in this topic are MQTT topics: a rule names it, or did."""
        return name in self._keyed

    def sources(self, filter: str) -> Sources:
        """The topics that may have messages for a filter; raises `InvalidName`."""
        if is_sys(filter):
            return Sources((), each=False)
        if names.is_explicit(filter):
            self._check_namespace(names.namespace_of(filter, self.namespace))
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
                break  # later rules never apply to these topics
        return Sources(tuple(funnels), each)


def overlap(one: str, other: str) -> bool:
    """Whether a topic name can match both filters."""
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
    """Whether each name that matches `other` matches `one`, too. The wildcards of a rule match
    levels that begin with `$` as well, so that each topic has a place.
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
