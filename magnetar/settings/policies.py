"""The table of all policies, as the generated part of docs/admin.md. Pure."""

from collections.abc import Iterable

import msgspec

from magnetar.core.policy.declaration import Policy, Scope, levels_of
from magnetar.core.policy.policies import Effective
from magnetar.settings.registry import SETTINGS

HEAD = (
    "| of a namespace | of a topic | default | settings of `[broker]` | effect |",
    "|---|---|---|---|---|",
)


def policy_table() -> str:
    """A row for each policy: those with an effect first."""
    policies = sorted(levels_of(Effective).policies, key=lambda policy: not policy.effect)
    check_settings(policies)
    return "\n".join([*HEAD, *map(_row, policies), "", ""])


def check_settings(policies: Iterable[Policy]) -> None:
    """Raise `LookupError` unless the settings that policies name are declared."""
    for policy in policies:
        for name in policy.settings:
            if f"broker.{name}" not in SETTINGS:
                raise LookupError(
                    f"the policy {policy.name} names the setting broker.{name}: declare it in "
                    "magnetar/settings/broker.py, or leave it out"
                )


def _row(policy: Policy) -> str:
    default = msgspec.json.encode(policy.show(policy.default)).decode()
    effect = policy.effect or f"None: {policy.reason}."
    cells = (
        _words(_paths(policy, policy.namespace)),
        _words(_paths(policy, policy.topic)),
        "" if default == "null" else f"`{default}`",
        _words(policy.settings),
        effect,
    )
    return "| " + " | ".join(cells) + " |"


def _paths(policy: Policy, scope: Scope | None) -> list[str]:
    if scope is None:
        return []
    return ["backlogQuota"] if policy.merged else scope.paths


def _words(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
