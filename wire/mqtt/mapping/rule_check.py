"""Whether mapping rules, of a configuration or an administrator, can be followed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from magnetar.core.kernel.errors import Invalid, InvalidName
from magnetar.core.kernel.names import TopicName
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.mapping.names import is_explicit
from magnetar.wire.mqtt.mapping.rules import EACH, MappingRule, Rules
from magnetar.wire.mqtt.topics import SYS, is_sys

RULES_MAX: Final = 1_000
"""Every new topic of a publisher is compared with each of them."""


def check(mapping: Sequence[MappingRule], rules: Rules) -> list[TopicName | None]:
    """Raise `Invalid`, with the field, for rules that could not be followed in the place of others;
    returns the topic of each (`target_of`).
    """
    if len(mapping) > RULES_MAX:
        raise Invalid(f"rules: there may be at most {RULES_MAX}")
    filters: set[str] = set()
    targets: list[TopicName | None] = []
    for number, rule in enumerate(mapping):
        if rule.filter in filters:
            raise Invalid(f"rules[{number}].filter: {rule.filter!r} is there twice")
        filters.add(rule.filter)
        with _about(f"rules[{number}].filter"):
            check_filter(rule.filter)
        with _about(f"rules[{number}].topic"):
            targets.append(target_of(rule, rules))
    return targets


@contextmanager
def _about(field: str) -> Iterator[None]:
    """Name the field of which an error is."""
    try:
        yield
    except Invalid as error:
        raise type(error)(f"{field}: {error}") from None


def check_filter(filter: str) -> None:
    """Raise `InvalidName` for a filter that matches nothing that a rule decides."""
    topics.check_filter(filter)
    if is_sys(filter):
        raise InvalidName(f"topics below {SYS} are not stored")
    if is_explicit(filter):
        raise InvalidName(f"{filter!r} names its topic itself, so no rule applies")


def target_of(rule: MappingRule, rules: Rules) -> TopicName | None:
    """The topic that a rule names; None for `EACH`. Raises `Invalid` for one that it may not."""
    topic = rule.topic
    if EACH in topic and topic != EACH:
        raise InvalidName(f"{EACH} stands alone: it names each topic as MoP does")
    if "\0" in topic:
        raise InvalidName(f"{topic!r} has U+0000")
    name, _default = rules.others([rule]).targets
    if name is None:
        return None
    if name.partitioned:
        raise InvalidName(f"{topic} is one partition: name the partitioned topic")
    if name.system:
        raise InvalidName(f"{topic} is reserved for the server")
    return name
