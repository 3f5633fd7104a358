"""Decides what an identity may do, from Pulsar's permissions and Kafka's ACLs, which both hold for
the same topics.

In this order (`docs/security.md` says why):

    1. a superuser may do everything
    2. an ACL that denies decides
    3. an ACL that allows decides
    4. an administrator of the tenant may do everything within it
    5. a permission of the namespace, topic or subscription decides
    6. if `allow_if_unmentioned`, what no ACL covers is allowed (`allow.everyone.if.no.acl.found`)
    7. otherwise it is not allowed

Decisions are remembered with each identity until a rule changes: `generation` counts the changes.

Invariants: a remembered right has the generation in which it was found; memory is bounded, for all
identities together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final
from weakref import WeakSet

from msgspec import Struct

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.security.acls import EVERYTHING, Acl, Acls, users_of
from magnetar.core.security.actions import Action, ResourceType, parts_of_subscription
from magnetar.core.security.identity import Identity
from magnetar.core.security.permissions import WORDS, Permissions

REMEMBERED_MAX: Final = 10_000
"""Rights that are remembered with one identity."""
REMEMBERED_OF_ALL_MAX: Final = 200_000
"""Those of all identities; beyond it all are forgotten, and found again as they are asked for."""
NAME_MAX: Final = 255
"""Letters of the longest name that is remembered: those of clients may have 32 KiB."""
OF_EITHER: Final = frozenset(WORDS.values())


class Ruling(Struct, frozen=True):
    """A decision, and the rule that made it."""

    allowed: bool
    rule: str


class Judge:
    """See the module's docstring."""

    def __init__(
        self, superusers: Collection[str] = (), allow_if_unmentioned: bool = False
    ) -> None:
        self.superusers = frozenset(superusers)
        self.permissions = Permissions()
        self.acls = Acls()
        self.generation = 1
        self._remembering: WeakSet[Identity] = WeakSet()
        self._remembered = 0
        """Rights that were added to those of `_remembering`; some of them are gone by now."""
        self._allow_if_unmentioned = allow_if_unmentioned

    def changed(self) -> None:
        """A rule has changed: forget all decisions."""
        self.generation += 1

    def allows(
        self, who: Identity, action: Action, kind: ResourceType, name: str, host: str = ""
    ) -> bool:
        """Whether an identity may do that. Plain call: for every request."""
        key = (action, kind, name)
        granted = who.granted
        if granted.get(key) == self.generation:
            return True
        if not self.verdict(who, action, kind, name, host).allowed:
            granted.pop(key, None)
            return False
        if len(name) > NAME_MAX or self._depends_on_host(kind, name):
            return True  # connections from several hosts may share the identity
        if len(granted) >= REMEMBERED_MAX:
            granted.clear()
        if self._remembered >= REMEMBERED_OF_ALL_MAX:
            self._forget_all()
        self._remembered += 1
        self._remembering.add(who)
        granted[key] = self.generation
        return True

    def _forget_all(self) -> None:
        for each in self._remembering:
            each.granted.clear()
        self._remembering.clear()
        self._remembered = 0

    def denial(
        self, who: Identity, action: Action, kind: ResourceType, name: str, host: str = ""
    ) -> Acl | None:
        """The ACL that forbids an action, also to those whom another rule would allow it."""
        if self.is_superuser(who):
            return None
        rule = self._acl_for(who, action, kind, name, host)
        return None if rule is None or rule.allow else rule

    def is_superuser(self, who: Identity) -> bool:
        return not self.superusers.isdisjoint(who.roles)

    def allows_somewhere(
        self, who: Identity, action: Action, kind: ResourceType, host: str = ""
    ) -> bool:
        """Whether some resource of a kind is allowed (`authorizeByResourceType` of Kafka)."""
        if self.is_superuser(who):
            return True
        if self.acls.anywhere(users_of(who.roles), action, kind, host):
            return True
        word = WORDS.get(action)
        if kind is ResourceType.TOPIC and word is not None:
            if self.permissions.administers(who.roles):
                return True
            return self.permissions.somewhere(who.roles, word)
        return self._allow_if_unmentioned

    def verdict(
        self, who: Identity, action: Action, kind: ResourceType, name: str, host: str = ""
    ) -> Ruling:
        """The decision, and why. A subscription needs the right of its topic, and may refuse."""
        if kind is ResourceType.SUBSCRIPTION:
            topic, subscription = parts_of_subscription(name)
            found = self.verdict(who, action, ResourceType.TOPIC, topic, host)
            refusal = self._refusal_of(who, topic, subscription) if found.allowed else ""
            return Ruling(False, refusal) if refusal else found
        if self.is_superuser(who):
            return Ruling(True, "a superuser")
        rule = self._acl_for(who, action, kind, name, host)
        if rule is not None:
            return Ruling(rule.allow, described(rule))
        granted = self._permission_for(who.roles, action, kind, name)
        if granted:
            return Ruling(True, granted)
        if self._is_unmentioned(kind, name):
            return Ruling(True, "no ACL covers it, and allow_everyone_if_no_acl_found is set")
        return Ruling(False, "no rule allows it")

    def _refusal_of(self, who: Identity, topic: str, subscription: str) -> str:
        """Why somebody who may use a topic may not use one of its subscriptions."""
        namespace = TopicName.parse(topic).namespace
        if self.is_superuser(who):
            return ""
        if self.permissions.is_admin(who.roles, namespace.tenant):
            return ""
        return self.permissions.subscription_refusal(who.roles, namespace, subscription)

    def _is_unmentioned(self, kind: ResourceType, name: str) -> bool:
        """Whether that nothing is said of a resource allows it; only of what ACLs may be for."""
        if not self._allow_if_unmentioned or kind >= ResourceType.SUBSCRIPTION:
            return False
        return not any(self.acls.covering(kind, acl_name(kind, name)))

    def _depends_on_host(self, kind: ResourceType, name: str) -> bool:
        if kind is ResourceType.SUBSCRIPTION:
            kind, name = ResourceType.TOPIC, parts_of_subscription(name)[0]
        covering = self.acls.covering(kind, acl_name(kind, name))
        return any(rule.host != EVERYTHING for rule in covering)

    def _acl_for(
        self, who: Identity, action: Action, kind: ResourceType, name: str, host: str
    ) -> Acl | None:
        users = users_of(who.roles)
        return self.acls.decisive(users, action, kind, acl_name(kind, name), host)

    def _permission_for(
        self, roles: Collection[str], action: Action, kind: ResourceType, name: str
    ) -> str:
        """The permission that allows an action; empty if none does."""
        judged = _BY_KIND.get(kind)
        return "" if judged is None else judged(self.permissions, roles, action, name)


def described(rule: Acl) -> str:
    """An ACL, as `kafka-acls` shows one."""
    return (
        f"the ACL {rule.principal} {'ALLOW' if rule.allow else 'DENY'} {rule.action.name} on "
        f"{rule.pattern.name} {rule.kind.name} {rule.name} from host {rule.host}"
    )


def acl_name(kind: ResourceType, name: str) -> str:
    """The name by which ACLs know a resource: that of Kafka's clients."""
    if kind is not ResourceType.TOPIC:
        return name
    try:
        return TopicName.parse(name).base.shortest
    except InvalidName:
        return name


def _topic(permissions: Permissions, roles: Collection[str], action: Action, name: str) -> str:
    try:
        topic = TopicName.parse(name)
    except InvalidName:
        return ""
    if permissions.is_admin(roles, topic.namespace.tenant):
        return f"an administrator of tenant {topic.namespace.tenant}"
    namespace = topic.namespace
    of_all = permissions.of_namespace(roles, namespace)
    return _granted(of_all, action, f"of namespace {namespace}") or _granted(
        permissions.of_topic(roles, topic), action, f"of topic {topic.base}"
    )


def _granted(words: frozenset[str], action: Action, where: str) -> str:
    if action is Action.DESCRIBE:  # a lookup needs any of them
        return f"the permissions {where}" if words & OF_EITHER else ""
    word = WORDS.get(action)
    return f"the permission {word} {where}" if word in words else ""


def _namespace(permissions: Permissions, roles: Collection[str], action: Action, name: str) -> str:
    namespace = NamespaceName.parse(name)
    if permissions.is_admin(roles, namespace.tenant):
        return f"an administrator of tenant {namespace.tenant}"
    return _granted(permissions.of_namespace(roles, namespace), action, f"of namespace {name}")


def _tenant(permissions: Permissions, roles: Collection[str], _action: Action, name: str) -> str:
    return f"an administrator of tenant {name}" if permissions.is_admin(roles, name) else ""


def _group(permissions: Permissions, roles: Collection[str], action: Action, _name: str) -> str:
    """Pulsar has no right for groups of their own: who may consume something may have any group,
    unless an ACL denies it.
    """
    if action not in (Action.READ, Action.DESCRIBE):
        return ""
    return "the permission consume" if permissions.somewhere(roles, "consume") else ""


def _transaction(
    permissions: Permissions, roles: Collection[str], action: Action, _name: str
) -> str:
    if action not in (Action.WRITE, Action.DESCRIBE):
        return ""
    return "the permission produce" if permissions.somewhere(roles, "produce") else ""


def _cluster(permissions: Permissions, roles: Collection[str], action: Action, _name: str) -> str:
    if action is not Action.IDEMPOTENT_WRITE:
        return ""
    return "the permission produce" if permissions.somewhere(roles, "produce") else ""


_BY_KIND: Final[dict[ResourceType, Callable[[Permissions, Collection[str], Action, str], str]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.NAMESPACE: _namespace,
    ResourceType.TENANT: _tenant,
    ResourceType.GROUP: _group,
    ResourceType.TRANSACTION: _transaction,
    ResourceType.CLUSTER: _cluster,
}
