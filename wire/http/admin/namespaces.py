"""`/admin/v2/namespaces`: their life, what is in them, and who may do what there.

What they decide is `policies/namespaces.py`'s. A namespace is one bundle here, whatever number of
them its creator asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from magnetar.core.broker import administration
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import AlreadyExists, Invalid, SubscriptionNotFound, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AuthPolicies, Bundles
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.http.admin.policies.namespaces import change, shown, taken
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.lookup import check_bundle
from magnetar.wire.http.routes import Table, alone, not_here, plain_text

MODES: Final[Mapping[str, str | tuple[str, ...]]] = {
    "PERSISTENT": "persistent://",
    "NON_PERSISTENT": "non-persistent://",
    "ALL": ("persistent://", "non-persistent://"),
}
"""How the names of topics begin that are asked for."""
TOPICS_PER_REST: Final = 50
"""Topics dealt with before the loop gets its turn."""


async def listed(ask: Ask) -> list[str]:
    return await ask.broker.catalog.namespaces(ask.part("tenant"))


async def get(ask: Ask) -> dict[str, Any]:
    return shown(ask, await ask.broker.catalog.policies(ask.namespace))


async def create(ask: Ask) -> None:
    """The body is a list of clusters in some tools, policies in others."""
    body = await ask.value(Any)
    if isinstance(body, list):
        body = {"replication_clusters": body}
    policies = msgspec.structs.replace(taken(ask, body or {}), bundles=Bundles())
    try:
        await ask.broker.catalog.create_namespace(ask.namespace, policies)
    except AlreadyExists as error:
        raise AlreadyExists("Namespace already exists") from error


async def delete(ask: Ask) -> None:
    await administration.delete_namespace(ask.broker, ask.namespace, force=ask.flag("force"))


async def topics(ask: Ask) -> list[str]:
    """Full names, partitions as the topics they are."""
    await ask.broker.catalog.policies(ask.namespace)
    wanted = MODES.get(ask.text("mode", "PERSISTENT").upper())
    if wanted is None:
        raise Invalid("mode must be PERSISTENT, NON_PERSISTENT or ALL")
    return [name for name in await topics_of(ask.broker, ask.namespace) if name.startswith(wanted)]


# -- bundles -----------------------------------------------------------------------------------


async def bundles(ask: Ask) -> Bundles:
    await ask.broker.catalog.policies(ask.namespace)
    return Bundles()


async def unload(ask: Ask) -> None:
    await administration.unload_namespace(ask.broker, ask.namespace)


async def unload_bundle(ask: Ask) -> None:
    check_bundle(ask)
    await administration.unload_namespace(ask.broker, ask.namespace)


async def split_bundle(ask: Ask) -> None:
    check_bundle(ask)
    raise not_here("a namespace is one bundle in this server: there is nobody to share it with")


# -- backlogs and subscriptions of all topics --------------------------------------------------


async def clear_backlog(ask: Ask) -> None:
    """Everything published so far counts as acknowledged, for one subscription or for all."""
    only = ask.subscription if "subscription" in ask.request.path_params else None
    async for topic in _persistent_topics(ask):
        for name, subscription in list(topic.subscriptions.items()):
            if only in (None, name) and subscription.cursor.backlog:
                subscription.skip_to(topic.ledger.chain.confirmed)
                await subscription.cursor.saved()


async def unsubscribe(ask: Ask) -> None:
    """A subscription ends on every topic that has it."""
    found = False
    async for topic in _persistent_topics(ask):
        if ask.subscription in topic.subscriptions:
            await topic.unsubscribe(ask.subscription, force=False)
            found = True
    if not found:
        raise SubscriptionNotFound(f"no topic has a subscription {ask.subscription}")


async def _persistent_topics(ask: Ask) -> AsyncIterator[PersistentTopic]:
    """One after the other, those that are not loaded as well."""
    await ask.broker.catalog.policies(ask.namespace)
    async for name in Cooperative(await topics_of(ask.broker, ask.namespace), TOPICS_PER_REST):
        if name.startswith(MODES["PERSISTENT"]):
            try:
                topic = await ask.broker.topic(TopicName.parse(name), create=False)
            except TopicNotFound:
                continue  # it was deleted meanwhile
            if topic.stored is not None:
                yield topic.stored


# -- permissions, kept for the day authorisation is switched on --------------------------------


async def permissions(ask: Ask) -> dict[str, list[str]]:
    return (await ask.broker.catalog.policies(ask.namespace)).auth_policies.namespace_auth


async def grant(ask: Ask) -> None:
    actions = await ask.value(list[str]) or []
    auth = await _auth(ask)
    auth.namespace_auth[ask.part("role")] = sorted(set(actions))
    await change(ask, auth_policies=auth)


async def revoke(ask: Ask) -> None:
    auth = await _auth(ask)
    auth.namespace_auth.pop(ask.part("role"), None)
    await change(ask, auth_policies=auth)


async def subscription_permissions(ask: Ask) -> dict[str, list[str]]:
    return (await ask.broker.catalog.policies(ask.namespace)).auth_policies.subscription_auth


async def grant_subscription(ask: Ask) -> None:
    auth = await _auth(ask)
    auth.subscription_auth[ask.subscription] = await ask.value(list[str]) or []
    await change(ask, auth_policies=auth)


async def revoke_subscription(ask: Ask) -> None:
    auth = await _auth(ask)
    roles = auth.subscription_auth.get(ask.subscription, [])
    auth.subscription_auth[ask.subscription] = [one for one in roles if one != ask.part("role")]
    await change(ask, auth_policies=auth)


async def _auth(ask: Ask) -> AuthPolicies:
    """A copy that is ours to change."""
    present = (await ask.broker.catalog.policies(ask.namespace)).auth_policies
    return AuthPolicies(
        dict(present.namespace_auth), dict(present.topic_auth), dict(present.subscription_auth)
    )


# -- properties --------------------------------------------------------------------------------


async def properties(ask: Ask) -> dict[str, str]:
    return (await _policies(ask)).properties


async def set_properties(ask: Ask) -> None:
    given = await ask.value(dict[str, str]) or {}
    await change(ask, properties={**(await _policies(ask)).properties, **given})


async def clear_properties(ask: Ask) -> None:
    await change(ask, properties={})


async def get_property(ask: Ask) -> Response:
    found = (await _policies(ask)).properties.get(ask.part("key"))
    if found is None:
        raise HTTPException(404, f"there is no property {ask.part('key')}")
    return plain_text(found)


async def set_property(ask: Ask) -> None:
    present = (await _policies(ask)).properties
    await change(ask, properties={**present, ask.part("key"): ask.part("value")})


async def remove_property(ask: Ask) -> Response:
    present = dict((await _policies(ask)).properties)
    before = present.pop(ask.part("key"), "")
    await change(ask, properties=present)
    return plain_text(before)


async def _policies(ask: Ask) -> NamespacePolicies:
    return await ask.broker.catalog.policies(ask.namespace)


HERE: Final = "/{tenant}/{namespace}"
TABLE: Final[Table] = (
    ("GET", "/{tenant}", listed),
    ("GET", HERE, get),
    ("PUT", HERE, create),
    ("DELETE", HERE, alone(delete)),
    ("GET", f"{HERE}/topics", topics),
    ("GET", f"{HERE}/bundles", bundles),
    ("PUT", f"{HERE}/unload", unload),
    ("PUT", f"{HERE}/{{bundle}}/unload", unload_bundle),
    ("PUT", f"{HERE}/{{bundle}}/split", split_bundle),
    ("POST", f"{HERE}/clearBacklog", clear_backlog),
    ("POST", f"{HERE}/clearBacklog/{{subscription}}", clear_backlog),
    ("POST", f"{HERE}/unsubscribe/{{subscription}}", unsubscribe),
    ("GET", f"{HERE}/permissions", permissions),
    ("GET", f"{HERE}/permissions/subscription", subscription_permissions),
    ("POST", f"{HERE}/permissions/subscription/{{subscription}}", alone(grant_subscription)),
    ("DELETE", f"{HERE}/permissions/{{subscription}}/{{role}}", alone(revoke_subscription)),
    ("POST", f"{HERE}/permissions/{{role}}", alone(grant)),
    ("DELETE", f"{HERE}/permissions/{{role}}", alone(revoke)),
    ("GET", f"{HERE}/properties", properties),
    ("PUT", f"{HERE}/properties", alone(set_properties)),
    ("DELETE", f"{HERE}/properties", alone(clear_properties)),
    ("GET", f"{HERE}/property/{{key}}", get_property),
    ("DELETE", f"{HERE}/property/{{key}}", alone(remove_property)),
    ("PUT", f"{HERE}/property/{{key}}/{{value}}", alone(set_property)),
)
