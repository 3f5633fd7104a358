"""Features for several clusters, brokers or bookies, which this single server does not have.

Reads are answered as if nothing were configured. Writes are refused with a reason, because they
would have no effect.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from starlette.exceptions import HTTPException

from magnetar.core.broker.topic_list import topics_of
from magnetar.core.kernel.errors import NotFound
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.wire.http.admin.topic_lookup import each_stored, having
from magnetar.wire.http.endpoints.lookup import check_bundle
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import NotHere, Table, not_here


async def nothing(request: AdminRequest) -> None:
    """The answer for a value that is not set, or was removed: it can never be set."""
    if "namespace" in request.request.path_params:
        await request.broker.catalog.policies(request.namespace)


# -- clusters ----------------------------------------------------------------------------------


async def not_migrated(request: AdminRequest) -> dict[str, object]:
    await request.broker.catalog.get_cluster(request.part("cluster"))
    return {"migrated": False}


async def nobody(request: AdminRequest) -> list[str]:
    await request.broker.catalog.get_cluster(request.part("cluster"))
    return []


async def not_isolated(request: AdminRequest) -> dict[str, object]:
    """What is set apart for one broker (`BrokerNamespaceIsolationData.java` of 4.2)."""
    await request.broker.catalog.get_cluster(request.part("cluster"))
    return {
        "brokerName": request.part("broker"),
        "policyName": None,
        "isPrimary": False,
        "namespaceRegex": [],
    }


async def anti_affinity(request: AdminRequest) -> list[str]:
    """The namespaces of a tenant that are in a group, which has no effect here; those of all
    tenants if none is named, as `pulsarctl` does.
    """
    catalog = request.broker.catalog
    tenant = request.text("property", request.text("tenant"))
    found = []
    for each in [tenant] if tenant else await catalog.tenants():
        for namespace in await catalog.namespaces(each):
            policies = await catalog.policies(NamespaceName.parse(namespace))
            if policies.anti_affinity == request.part("group"):
                found.append(namespace)
    return found


ANTI_AFFINITY: Final[Table] = (
    ("GET", "/{cluster}/antiAffinity/{group}", anti_affinity, Needs.SUPERUSER),
)
"""Also below a path of the first version, which `pulsar-admin` uses for this
(`NamespacesImpl.java`)."""


async def none_such(request: AdminRequest) -> None:
    await request.broker.catalog.get_cluster(request.part("cluster"))
    raise NotFound("there is nothing of that name: this cluster has one broker")


_ONE_BROKER: Final = NotHere("this cluster has one broker: there is nobody to set apart")
_NO_MIGRATION: Final = NotHere("this server sends nobody to other clusters")
CLUSTERS: Final[Table] = (
    ("GET", "/{cluster}/migrate", not_migrated, Needs.SUPERUSER),
    ("POST", "/{cluster}/migrate", _NO_MIGRATION, Needs.SUPERUSER),
    ("GET DELETE", "/{cluster}/failureDomains/{domain}", none_such, Needs.SUPERUSER),
    ("POST", "/{cluster}/failureDomains/{domain}", _ONE_BROKER, Needs.SUPERUSER),
    ("GET", "/{cluster}/namespaceIsolationPolicies/brokers", nobody, Needs.SUPERUSER),
    (
        "GET",
        "/{cluster}/namespaceIsolationPolicies/brokers/{broker}",
        not_isolated,
        Needs.SUPERUSER,
    ),
    ("GET DELETE", "/{cluster}/namespaceIsolationPolicies/{policy}", none_such, Needs.SUPERUSER),
    ("POST", "/{cluster}/namespaceIsolationPolicies/{policy}", _ONE_BROKER, Needs.SUPERUSER),
)


# -- namespaces --------------------------------------------------------------------------------


async def no_affinity(request: AdminRequest) -> None:
    await nothing(request)
    raise HTTPException(404, "no bookies are preferred: storage is inside this server")


async def hash_positions(admin_request: AdminRequest) -> dict[str, Any]:
    """The positions of topics in the hash space of their namespace."""
    check_bundle(admin_request)
    await admin_request.broker.catalog.policies(admin_request.namespace)
    request = ",".join(admin_request.texts("topics")).split(",")
    names = [TopicName.parse(name).full for name in request if name]
    if not names:
        names = await topics_of(admin_request.broker, admin_request.namespace)
    return {
        "namespace": str(admin_request.namespace),
        "bundle": admin_request.part("bundle"),
        "hashPositions": {name: zlib.crc32(name.encode()) for name in names},
    }


_SPACE: Final = "/{tenant}/{namespace}"
_NO_BOOKIES: Final = NotHere("storage is inside this server, not on bookies that could be chosen")
_NOT_LABELS: Final = NotHere("properties of topics are no labels of this server's metrics")
_NOT_OFFLOADED: Final = NotHere("ledgers are not offloaded by this server yet")
_LABELS: Final = f"{_SPACE}/allowedTopicPropertyKeysForMetrics"
_NO_FILTERS: Final = NotHere("this server runs no entry filters: they are Java classes")
NAMESPACES: Final[Table] = (
    ("GET", f"{_SPACE}/persistence/bookieAffinity", no_affinity, Needs.SUPERUSER),
    ("POST", f"{_SPACE}/persistence/bookieAffinity", _NO_BOOKIES, Needs.SUPERUSER),
    ("DELETE", f"{_SPACE}/persistence/bookieAffinity", nothing, Needs.SUPERUSER),
    ("POST", f"{_SPACE}/migration", _NO_MIGRATION, Needs.SUPERUSER),
    ("GET DELETE", f"{_SPACE}/entryFilters", nothing, Needs.TENANT_ADMIN),
    ("POST PUT", f"{_SPACE}/entryFilters", _NO_FILTERS, Needs.TENANT_ADMIN),
    ("GET DELETE", _LABELS, nothing, Needs.TENANT_ADMIN),
    ("POST", _LABELS, _NOT_LABELS, Needs.TENANT_ADMIN),
    ("GET", f"{_SPACE}/scanOffloadedLedgers", _NOT_OFFLOADED, Needs.TENANT_ADMIN),
    ("GET", f"{_SPACE}/{{bundle}}/topicHashPositions", hash_positions, Needs.NAMESPACE),
    *ANTI_AFFINITY,
)


# -- topics ------------------------------------------------------------------------------------


async def replicated(request: AdminRequest) -> dict[str, bool]:
    """By topic: whether the subscription is replicated to other clusters."""
    found = having(await each_stored(request), request.subscription)
    return {topic.name.full: subscription.replicated for topic, subscription in found}


async def set_replicated(request: AdminRequest) -> None:
    found = having(await each_stored(request), request.subscription)
    if await request.value(bool):
        raise not_here("there are no other clusters here that a subscription could be kept in")
    for _topic, subscription in found:
        subscription.replicated = False


_HERE: Final = "/{tenant}/{namespace}/{topic}"
_STATUS: Final = f"{_HERE}/subscription/{{subscription}}/replicatedSubscriptionStatus"
_NO_ESTIMATE: Final = NotHere("no backlog is estimated here: the stats of a topic have what it is")
TOPICS: Final[Table] = (
    ("GET", _STATUS, replicated, Needs.CONSUMER),
    ("POST", _STATUS, set_replicated, Needs.CONSUMER),
    ("GET", f"{_HERE}/backlog", _NO_ESTIMATE, Needs.TOPIC),
    ("GET DELETE", f"{_HERE}/entryFilters", nothing, Needs.TENANT_ADMIN),
    ("POST PUT", f"{_HERE}/entryFilters", _NO_FILTERS, Needs.TENANT_ADMIN),
)
