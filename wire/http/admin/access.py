"""`.../access`: whether a role may do something, and by which rule; one permission more or less.
Paths of this server's own, for `magnetar access`.

The paths that Pulsar has for permissions set all of a role's; these add or take one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from msgspec import Struct

from magnetar.core.kernel.errors import Invalid
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security.actions import Action, ResourceType, subscription_of
from magnetar.core.security.identity import Identity
from magnetar.core.security.permissions import WORDS
from magnetar.wire.http.admin.policies.namespaces import change, change_of
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, exclusive

PERMISSIONS: Final = {word: action for action, word in WORDS.items()}
ACTIONS: Final = {
    **PERMISSIONS,
    **{each.name.lower().replace("_", "-"): each for each in Action if each not in WORDS},
    "read": Action.READ,
    "write": Action.WRITE,
}
"""The words of Pulsar and of Kafka."""
del ACTIONS["all"]
OFF: Final = "authorisation is off: everybody may do everything"


async def verdict(request: AdminRequest) -> dict[str, Any]:
    """Whether roles may do something with a topic, and the rule that says so."""
    roles = tuple(request.texts("role"))
    if not roles or not all(roles):
        raise Invalid("role is missing: whom is it about?")
    action = _known(ACTIONS, request.text("action"))
    topic, subscription = request.topic.base.full, request.text("subscription")
    kind, name = ResourceType.TOPIC, topic
    if subscription:
        kind, name = ResourceType.SUBSCRIPTION, subscription_of(topic, subscription)
    await request.broker.rules.settled()
    judge = request.services.access.judge
    if judge is None:
        return {"allowed": True, "rule": OFF}
    found = judge.verdict(Identity(roles[0], roles), action, kind, name, request.text("host"))
    return {"allowed": found.allowed, "rule": found.rule}


async def grant(request: AdminRequest) -> None:
    await _set(request, present=True)


async def revoke(request: AdminRequest) -> None:
    await _set(request, present=False)


async def _set(request: AdminRequest, *, present: bool) -> None:
    """Add a permission of the topic, or of the namespace if the path names none."""
    role, word = request.part("role"), request.part("action")
    known_actions([word])
    auth = (await request.broker.catalog.policies(request.namespace)).auth_policies
    namespace, topics = auth.namespace_auth, auth.topic_auth
    if "topic" in request.request.path_params:
        full = request.topic.full
        topics = {**topics, full: _changed(topics.get(full, {}), role, word, present=present)}
    else:
        namespace = _changed(namespace, role, word, present=present)
    await change(request, auth_policies=AuthPolicies(namespace, topics, auth.subscription_auth))


def _changed(
    permissions: dict[str, list[str]], role: str, word: str, *, present: bool
) -> dict[str, list[str]]:
    words = set(permissions.get(role, ())) - {word}
    if present:
        words.add(word)
    others = {name: found for name, found in permissions.items() if name != role}
    return {**others, role: sorted(words)} if words else others


def known_actions(words: Collection[str]) -> list[str]:
    """Permissions as they are stored; `Invalid` for a word that is none."""
    for word in words:
        _known(PERMISSIONS, word)
    return sorted(set(words))


class TopicGrant(Struct, frozen=True):
    """What a role may do with a topic, as `grantPermissionsOnTopics` has it; without actions, as
    `revokePermissionsOnTopics` has it.
    """

    topic: str
    role: str
    actions: list[str] = []


async def grant_on_topics(request: AdminRequest) -> None:
    await _set_on_topics(request, present=True)


async def revoke_on_topics(request: AdminRequest) -> None:
    await _set_on_topics(request, present=False)


async def _set_on_topics(request: AdminRequest, *, present: bool) -> None:
    """Set, or remove, all permissions of roles with topics of one namespace, in one change."""
    grants: list[TopicGrant] = await request.value(list[TopicGrant]) or []
    names = [TopicName.parse(each.topic) for each in grants]
    for tenant in {name.namespace.tenant for name in names}:
        request.check(Action.ALTER, ResourceType.TENANT, tenant)
    if len({name.namespace for name in names}) != 1:
        raise Invalid("topics of exactly one namespace have to be named")
    broker, namespace = request.broker, names[0].namespace
    async with broker.catalog.changing(namespace):
        auth = (await broker.catalog.policies(namespace)).auth_policies
        topics = {topic: dict(roles) for topic, roles in auth.topic_auth.items()}
        for name, each in zip(names, grants, strict=True):
            roles = topics.setdefault(name.full, {})
            roles.pop(each.role, None)
            if present:
                roles[each.role] = known_actions(each.actions)
        changed = AuthPolicies(auth.namespace_auth, topics, auth.subscription_auth)
        await change_of(broker, namespace, auth_policies=changed)


def _known(words: dict[str, Action], word: str) -> Action:
    if word not in words:
        raise Invalid(f"action is {word!r}: it must be one of {', '.join(words)}")
    return words[word]


TOPIC: Final = "/{tenant}/{namespace}/{topic}/access"
NAMESPACE: Final = "/{tenant}/{namespace}/access"
ONE: Final = "/{role}/{action}"
TOPICS: Final[Table] = (
    ("GET", TOPIC, verdict, Needs.TENANT_ADMIN),
    ("PUT", TOPIC + ONE, exclusive(grant), Needs.TENANT_ADMIN),
    ("DELETE", TOPIC + ONE, exclusive(revoke), Needs.TENANT_ADMIN),
)
NAMESPACES: Final[Table] = (
    ("POST", "/grantPermissionsOnTopics", grant_on_topics, Needs.TENANTS_ADMIN),
    ("POST", "/revokePermissionsOnTopics", revoke_on_topics, Needs.TENANTS_ADMIN),
    ("PUT", NAMESPACE + ONE, exclusive(grant), Needs.TENANT_ADMIN),
    ("DELETE", NAMESPACE + ONE, exclusive(revoke), Needs.TENANT_ADMIN),
)
