"""What producers and consumers need, as rights on resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.kernel.errors import Unauthorized
from magnetar.core.kernel.names import TopicName
from magnetar.core.security.actions import Action, ResourceType, subscription_of

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.client import PulsarClient

Need = tuple[Action, ResourceType, str]
"""An action on a resource."""


def to_produce(name: TopicName) -> Need:
    return Action.WRITE, ResourceType.TOPIC, name.base.full


def to_consume(name: TopicName, subscription: str) -> Need:
    """READ on a subscription includes READ on its topic."""
    resource = subscription_of(name.base.full, subscription)
    return Action.READ, ResourceType.SUBSCRIPTION, resource


def allows(client: PulsarClient, need: Need) -> bool:
    """Whether a client may do that."""
    try:
        client.check(*need)
    except Unauthorized:
        return False
    return True
