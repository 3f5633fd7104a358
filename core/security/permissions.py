"""Pulsar's permissions: administrators of tenants, and what roles may do in namespaces. Pure.

They are stored with tenants and in the policies of namespaces, in Pulsar's own form
(`AuthPoliciesImpl.java` of 4.2). A permission of a namespace holds for all its topics, one of a
topic for it and its partitions. A subscription that names roles is for these only, one that names
none is for everybody who may consume (`PulsarAuthorizationProvider.java` of 4.2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security.actions import Action

WORDS: Final[Mapping[Action, str]] = {
    Action.WRITE: "produce",
    Action.READ: "consume",
    Action.FUNCTIONS: "functions",
    Action.SOURCES: "sources",
    Action.SINKS: "sinks",
    Action.PACKAGES: "packages",
}
"""The words of Pulsar for actions that can be permitted (`AuthAction.java`)."""


class NamespaceRights(Struct, frozen=True):
    """The permissions of one namespace."""

    auth: AuthPolicies = AuthPolicies()
    prefixed: bool = False
    """Whether the name of a subscription begins with its user's role (`subscriptionAuthMode`)."""


class Permissions:
    """All permissions, in memory."""

    def __init__(self) -> None:
        self.admins: dict[str, frozenset[str]] = {}
        """The administrators of each tenant."""
        self.namespaces: dict[str, NamespaceRights] = {}
        """Only those with a permission or a mode."""

    def is_admin(self, roles: Collection[str], tenant: str) -> bool:
        return not self.admins.get(tenant, frozenset()).isdisjoint(roles)

    def administers(self, roles: Collection[str]) -> bool:
        """Whether roles administer some tenant."""
        return any(not admins.isdisjoint(roles) for admins in self.admins.values())

    def of_topic(self, roles: Collection[str], name: TopicName) -> frozenset[str]:
        """What roles may do with a topic, in Pulsar's words."""
        rights = self.namespaces.get(str(name.namespace))
        if rights is None:
            return frozenset()
        auth = rights.auth
        found: set[str] = set()
        topics = (auth.topic_auth.get(name.full, {}), auth.topic_auth.get(name.base.full, {}))
        for role in roles:
            for granted in (auth.namespace_auth, *topics):
                found.update(granted.get(role, ()))
        return frozenset(found)

    def of_namespace(self, roles: Collection[str], name: NamespaceName) -> frozenset[str]:
        """What roles may do with all topics of a namespace."""
        rights = self.namespaces.get(str(name))
        if rights is None:
            return frozenset()
        granted = rights.auth.namespace_auth
        return frozenset([word for role in roles for word in granted.get(role, ())])

    def somewhere(self, roles: Collection[str], word: str) -> bool:
        """Whether roles may do that with any topic of any namespace."""
        for rights in self.namespaces.values():
            for granted in (rights.auth.namespace_auth, *rights.auth.topic_auth.values()):
                if any(word in granted.get(role, ()) for role in roles):
                    return True
        return False

    def subscription_refusal(
        self, roles: Collection[str], namespace: NamespaceName, subscription: str
    ) -> str:
        """Why roles that may consume may not use a subscription; empty if they may."""
        rights = self.namespaces.get(str(namespace))
        if rights is None:
            return ""
        named = rights.auth.subscription_auth.get(subscription)
        if named and set(named).isdisjoint(roles):
            return f"subscription {subscription} is for other roles"
        if rights.prefixed and not any(subscription.startswith(role) for role in roles):
            return f"the name of a subscription in {namespace} begins with its user's role"
        return ""
