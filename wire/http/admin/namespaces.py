"""`/admin/v2/namespaces`: creating and deleting them, their topics, bundles and permissions.

Their policies are in `policies/namespaces.py`. A namespace is always one bundle here, however many
its creator requested.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from magnetar.core.broker import administration
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import AlreadyExists, Invalid, SubscriptionNotFound, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AuthPolicies, Bundles
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.http.admin.access import known_actions
from magnetar.wire.http.admin.policies.namespaces import change, parsed_policies, shown
from magnetar.wire.http.admin.policies.resource_groups import create_namespace
from magnetar.wire.http.admin.topic_lookup import check_one_owner
from magnetar.wire.http.endpoints.lookup import check_bundle
from magnetar.wire.http.request import AdminRequest, distinct
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, exclusive, not_here, plain_text

MODES: Final[Mapping[str, str | tuple[str, ...]]] = {
    "PERSISTENT": "persistent://",
    "NON_PERSISTENT": "non-persistent://",
    "ALL": ("persistent://", "non-persistent://"),
}
"""The prefix of topic names in each mode."""
TOPICS_PER_REST: Final = 50
"""Topics processed before yielding to the loop."""


async def listed(request: AdminRequest) -> list[str]:
    return await request.broker.catalog.namespaces(request.part("tenant"))


async def get(request: AdminRequest) -> dict[str, Any]:
    return shown(await request.broker.catalog.policies(request.namespace))


async def create(request: AdminRequest) -> None:
    """Create a namespace; some tools send a list of clusters as the body, others policies."""
    body = await request.value(Any)
    if isinstance(body, list):
        body = {"replication_clusters": body}
    policies = msgspec.structs.replace(parsed_policies(request, body or {}), bundles=Bundles())
    try:
        await create_namespace(request, policies)
    except AlreadyExists as error:
        raise AlreadyExists("Namespace already exists") from error
    await request.broker.rules.settled()


async def delete(request: AdminRequest) -> None:
    await administration.delete_namespace(
        request.broker, request.namespace, force=request.flag("force")
    )
    await request.broker.rules.settled()


async def topics(request: AdminRequest) -> list[str]:
    """Full names of the topics; each partition is one of them."""
    await request.broker.catalog.policies(request.namespace)
    requested = MODES.get(request.text("mode", "PERSISTENT").upper())
    if requested is None:
        raise Invalid("mode must be PERSISTENT, NON_PERSISTENT or ALL")
    return [
        name
        for name in await topics_of(
            request.broker, request.namespace, system=request.flag("includeSystemTopic")
        )
        if name.startswith(requested)
    ]


# -- bundles -----------------------------------------------------------------------------------


async def bundles(request: AdminRequest) -> Bundles:
    await request.broker.catalog.policies(request.namespace)
    return Bundles()


async def unload(request: AdminRequest) -> None:
    await administration.unload_namespace(request.broker, request.namespace)


async def unload_bundle(request: AdminRequest) -> None:
    check_bundle(request)
    await administration.unload_namespace(request.broker, request.namespace)


async def split_bundle(request: AdminRequest) -> None:
    check_bundle(request)
    raise not_here("a namespace is one bundle in this server: there is nobody to share it with")


async def delete_bundle(request: AdminRequest) -> None:
    """Delete all topics of the bundle; the namespace stays, with its policies."""
    check_bundle(request)
    await administration.delete_topics(
        request.broker, request.namespace, force=request.flag("force")
    )


# -- backlogs and subscriptions of all topics --------------------------------------------------


async def clear_backlog(request: AdminRequest) -> None:
    """Acknowledge everything published so far, for one subscription or for all that are not held
    by a front.
    """
    _check_bundle_if_named(request)
    only = request.subscription if "subscription" in request.request.path_params else None
    held = request.broker.env.held
    if only is not None:
        held.check(only)
    async for topic in _persistent_topics(request):
        for name, subscription in list(topic.subscriptions.items()):
            if only in (None, name) and subscription.cursor.backlog and not held.refusal(name):
                subscription.skip_to(topic.ledger.chain.confirmed)
                await subscription.cursor.saved()


async def unsubscribe(request: AdminRequest) -> None:
    """Delete a subscription from every topic that has it."""
    _check_bundle_if_named(request)
    request.broker.env.held.check(request.subscription)
    found = False
    async for topic in _persistent_topics(request):
        if request.subscription in topic.subscriptions:
            await topic.unsubscribe(request.subscription, force=False)
            found = True
    if not found:
        raise SubscriptionNotFound(f"no topic has a subscription {request.subscription}")


def _check_bundle_if_named(request: AdminRequest) -> None:
    if "bundle" in request.request.path_params:
        check_bundle(request)


async def _persistent_topics(request: AdminRequest) -> AsyncIterator[PersistentTopic]:
    """Process the topics one after the other, including those that are not loaded."""
    await request.broker.catalog.policies(request.namespace)
    found = map(TopicName.parse, await topics_of(request.broker, request.namespace))
    names = [name for name in found if name.persistent]
    await check_one_owner(request, names)
    async for name in Cooperative(names, TOPICS_PER_REST):
        try:
            topic = await request.broker.topic(name, create=False)
        except TopicNotFound:
            continue  # it was deleted meanwhile
        if topic.stored is not None:
            yield topic.stored


# -- permissions: what is answered is in force -------------------------------------------------


async def permissions(request: AdminRequest) -> dict[str, list[str]]:
    return (await request.broker.catalog.policies(request.namespace)).auth_policies.namespace_auth


async def grant(request: AdminRequest) -> None:
    actions = await _sent_names(request, "Actions")
    auth = await _auth(request)
    auth.namespace_auth[request.part("role")] = known_actions(actions)
    await change(request, auth_policies=auth)


async def revoke(request: AdminRequest) -> None:
    auth = await _auth(request)
    auth.namespace_auth.pop(request.part("role"), None)
    await change(request, auth_policies=auth)


async def subscription_permissions(request: AdminRequest) -> dict[str, list[str]]:
    return (
        await request.broker.catalog.policies(request.namespace)
    ).auth_policies.subscription_auth


async def grant_subscription(request: AdminRequest) -> None:
    auth = await _auth(request)
    auth.subscription_auth[request.subscription] = await _sent_names(request, "Roles")
    await change(request, auth_policies=auth)


async def revoke_subscription(request: AdminRequest) -> None:
    auth = await _auth(request)
    roles = auth.subscription_auth.get(request.subscription, [])
    auth.subscription_auth[request.subscription] = [
        one for one in roles if one != request.part("role")
    ]
    await change(request, auth_policies=auth)


async def _sent_names(request: AdminRequest, what: str) -> list[str]:
    """The list in the body, which must be there: a forgotten one would take everything away."""
    sent = await request.value(list[str])
    if sent is None:
        raise Invalid(f"{what} should not be null")
    return distinct(sent)


async def _auth(request: AdminRequest) -> AuthPolicies:
    """A copy that may be modified."""
    present = (await request.broker.catalog.policies(request.namespace)).auth_policies
    return AuthPolicies(
        dict(present.namespace_auth), dict(present.topic_auth), dict(present.subscription_auth)
    )


# -- properties --------------------------------------------------------------------------------


async def properties(request: AdminRequest) -> dict[str, str]:
    return (await _policies(request)).properties


async def set_properties(request: AdminRequest) -> None:
    given = await request.value(dict[str, str]) or {}
    await change(request, properties={**(await _policies(request)).properties, **given})


async def clear_properties(request: AdminRequest) -> None:
    await change(request, properties={})


async def get_property(request: AdminRequest) -> Response | None:
    found = (await _policies(request)).properties.get(request.part("key"))
    return None if found is None else plain_text(found)


async def set_property(request: AdminRequest) -> None:
    present = (await _policies(request)).properties
    await change(request, properties={**present, request.part("key"): request.part("value")})


async def remove_property(request: AdminRequest) -> Response:
    present = dict((await _policies(request)).properties)
    before = present.pop(request.part("key"), "")
    await change(request, properties=present)
    return plain_text(before)


async def _policies(request: AdminRequest) -> NamespacePolicies:
    return await request.broker.catalog.policies(request.namespace)


HERE: Final = "/{tenant}/{namespace}"
TABLE: Final[Table] = (
    ("GET", "/{tenant}", listed, Needs.TENANT_ADMIN),
    ("GET", HERE, get, Needs.TENANT_ADMIN),
    ("PUT", HERE, create, Needs.TENANT_ADMIN),
    ("DELETE", HERE, exclusive(delete), Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/topics", topics, Needs.NAMESPACE),
    ("GET", f"{HERE}/bundles", bundles, Needs.NAMESPACE),
    ("PUT", f"{HERE}/unload", unload, Needs.SUPERUSER),
    ("PUT", f"{HERE}/{{bundle}}/unload", unload_bundle, Needs.SUPERUSER),
    ("PUT", f"{HERE}/{{bundle}}/split", split_bundle, Needs.SUPERUSER),
    ("DELETE", f"{HERE}/0x{{range}}", exclusive(delete_bundle), Needs.TENANT_ADMIN),
    *(
        row
        for whole in (HERE, f"{HERE}/{{bundle}}")
        for row in (
            ("POST", f"{whole}/clearBacklog", clear_backlog, Needs.TENANT_ADMIN),
            ("POST", f"{whole}/clearBacklog/{{subscription}}", clear_backlog, Needs.TENANT_ADMIN),
            ("POST", f"{whole}/unsubscribe/{{subscription}}", unsubscribe, Needs.TENANT_ADMIN),
        )
    ),
    ("GET", f"{HERE}/permissions", permissions, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/permissions/subscription", subscription_permissions, Needs.TENANT_ADMIN),
    (
        "POST",
        f"{HERE}/permissions/subscription/{{subscription}}",
        exclusive(grant_subscription),
        Needs.TENANT_ADMIN,
    ),
    (
        "DELETE",
        f"{HERE}/permissions/{{subscription}}/{{role}}",
        exclusive(revoke_subscription),
        Needs.TENANT_ADMIN,
    ),
    ("POST", f"{HERE}/permissions/{{role}}", exclusive(grant), Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/permissions/{{role}}", exclusive(revoke), Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/properties", properties, Needs.TENANT_ADMIN),
    ("PUT", f"{HERE}/properties", exclusive(set_properties), Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/properties", exclusive(clear_properties), Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/property/{{key}}", get_property, Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/property/{{key}}", exclusive(remove_property), Needs.TENANT_ADMIN),
    ("PUT", f"{HERE}/property/{{key}}/{{value}}", exclusive(set_property), Needs.TENANT_ADMIN),
)
