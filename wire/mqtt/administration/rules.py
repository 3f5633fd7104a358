"""The mapping rules of a namespace, as administrators read and change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from magnetar.core.kernel.errors import Invalid, InvalidName, NamespaceNotFound
from magnetar.core.ports.client_administration import RuleDetails, RulesDetails
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.mapping.names import is_explicit
from magnetar.wire.mqtt.mapping.rules import EACH, MappingRule
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.topics import SYS, is_sys

RULES_MAX: Final = 1_000
"""Every new topic of a publisher is compared with each of them."""


class MqttRuleAdministration:
    """See the module's docstring."""

    def __init__(self, services: MqttServices) -> None:
        self._logs = services.logs
        self._catalog = services.broker.catalog
        self._changes = services.rule_changes

    async def rules(self) -> RulesDetails:
        *in_force, _default = self._logs.rules.rules
        shown = [RuleDetails(one.filter, one.topic) for one in in_force]
        record = self._changes.stored.record
        return RulesDetails(shown, record.rules is None, record.changes)

    async def set_rules(self, rules: Sequence[RuleDetails], version: int | None) -> None:
        mapping = [MappingRule(one.filter, one.topic) for one in rules]
        await self._check(mapping)
        await self._changes.change(mapping, version)

    async def reset_rules(self, version: int | None) -> None:
        await self._changes.change(None, version)

    async def _check(self, mapping: Sequence[MappingRule]) -> None:
        """Raise `Invalid`, with the field, for rules that could not be followed."""
        if len(mapping) > RULES_MAX:
            raise Invalid(f"rules: there may be at most {RULES_MAX}")
        filters: set[str] = set()
        for number, rule in enumerate(mapping):
            if rule.filter in filters:
                raise Invalid(f"rules[{number}].filter: {rule.filter!r} is there twice")
            filters.add(rule.filter)
            with _about(f"rules[{number}].filter"):
                topics.check_filter(rule.filter)
                _check_filter(rule.filter)
            with _about(f"rules[{number}].topic"):
                await self._check_topic(rule)

    async def _check_topic(self, rule: MappingRule) -> None:
        topic = rule.topic
        if EACH in topic and topic != EACH:
            raise InvalidName(f"{EACH} stands alone: it names each topic as MoP does")
        if "\0" in topic:
            raise InvalidName(f"{topic!r} has U+0000")
        name, _default = self._logs.rules.others([rule]).targets
        if name is None:
            return
        if name.partitioned:
            raise InvalidName(f"{topic} is one partition: name the partitioned topic")
        if name.system:
            raise InvalidName(f"{topic} is reserved for the server")
        try:
            await self._catalog.policies(name.namespace)
        except NamespaceNotFound as error:
            raise Invalid(str(error)) from None


@contextmanager
def _about(field: str) -> Iterator[None]:
    """Name the field of which an error is."""
    try:
        yield
    except Invalid as error:
        raise type(error)(f"{field}: {error}") from None


def _check_filter(filter: str) -> None:
    """Raise `InvalidName` for a filter that matches nothing that a rule decides."""
    if is_sys(filter):
        raise InvalidName(f"topics below {SYS} are not stored")
    if is_explicit(filter):
        raise InvalidName(f"{filter!r} names its topic itself, so no rule applies")
