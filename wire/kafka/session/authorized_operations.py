"""The operations that a client may perform on a resource, as bits (KIP-430)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.security.actions import Action, ResourceType

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.context import Caller

OMITTED: Final = -2147483648
"""If the request does not ask for them."""
OPERATIONS: Final[Mapping[ResourceType, tuple[Action, ...]]] = {
    ResourceType.TOPIC: (
        Action.READ,
        Action.WRITE,
        Action.CREATE,
        Action.DELETE,
        Action.ALTER,
        Action.DESCRIBE,
        Action.DESCRIBE_CONFIGS,
        Action.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Action.READ, Action.DELETE, Action.DESCRIBE),
    ResourceType.CLUSTER: (
        Action.CREATE,
        Action.ALTER,
        Action.DESCRIBE,
        Action.CLUSTER_ACTION,
        Action.DESCRIBE_CONFIGS,
        Action.ALTER_CONFIGS,
        Action.IDEMPOTENT_WRITE,
    ),
}
"""Those that exist (`AclEntry.supportedOperations` of Kafka)."""


def operations(caller: Caller, kind: ResourceType, name: str) -> int:
    """The operations that the client may perform, each as the bit of its number."""
    return sum(1 << action for action in OPERATIONS[kind] if caller.may(action, kind, name))
