"""The table of all policies, as the generated part of docs/admin.md. Pure."""

import msgspec

from magnetar.core.policy.declaration import Policy, Scope, levels_of
from magnetar.core.policy.policies import Effective

HEAD = (
    "| of a namespace | of a topic | default | settings of `[broker]` | effect |",
    "|---|---|---|---|---|",
)


def policy_table() -> str:
    """A row for each policy: those with an effect first."""
    policies = sorted(levels_of(Effective).policies, key=lambda policy: not policy.effect)
    return "\n".join([*HEAD, *map(_row, policies), "", ""])


def _row(policy: Policy) -> str:
    default = msgspec.json.encode(policy.show(policy.default)).decode()
    effect = policy.effect or f"None: {policy.reason}."
    cells = (
        _words(_paths(policy, policy.namespace)),
        _words(_paths(policy, policy.topic)),
        "" if default == "null" else f"`{default}`",
        _words(policy.settings.split()),
        effect,
    )
    return "| " + " | ".join(cells) + " |"


def _paths(policy: Policy, scope: Scope | None) -> list[str]:
    if scope is None:
        return []
    return ["backlogQuota"] if policy.merged else scope.paths


def _words(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
