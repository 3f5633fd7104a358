"""The mapping rules of a namespace, as administrators read and change them."""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.core.kernel.errors import Invalid, NamespaceNotFound
from magnetar.core.ports.client_administration import RuleDetails, RulesDetails
from magnetar.wire.mqtt.mapping.rule_check import check
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.services import MqttServices


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
        for number, name in enumerate(check(mapping, self._logs.rules)):
            if name is None:
                continue
            try:
                await self._catalog.policies(name.namespace)
            except NamespaceNotFound as error:
                raise Invalid(f"rules[{number}].topic: {error}") from None
