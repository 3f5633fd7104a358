"""The tables of the admin interface, by the paths at which they are mounted."""

from __future__ import annotations

from magnetar.core.policy.declaration import Levels
from magnetar.wire.http.admin import (
    access,
    bookies,
    brokers,
    clusters,
    messages,
    mqtt,
    namespaces,
    partitions,
    single_cluster,
    subscriptions,
    tenants,
    topic_properties,
    topics,
    unsupported,
)
from magnetar.wire.http.admin.policies import namespaces as namespace_policies
from magnetar.wire.http.admin.policies import resource_groups
from magnetar.wire.http.admin.policies import topics as topic_policies
from magnetar.wire.http.admin.programs import reading, writing
from magnetar.wire.http.admin.schemas import subjects, topic_schemas
from magnetar.wire.http.admin.stats import (
    internal_stats,
    topic_stats,
    transaction_stats,
    websocket_stats,
)
from magnetar.wire.http.routes import Table


def tables(levels: Levels) -> dict[str, Table]:
    """All tables by path; the paths of policies follow from their declarations."""
    of_topics: Table = (
        *topics.TABLE,
        *partitions.TABLE,
        *topic_properties.TABLE,
        *access.TOPICS,
        *topic_stats.TABLE,
        *internal_stats.TABLE,
        *subscriptions.TABLE,
        *messages.TABLE,
        *topic_policies.table(levels),
        *single_cluster.TOPICS,
    )
    return {
        "/admin/v2/clusters": (*clusters.TABLE, *single_cluster.CLUSTERS),
        "/admin/v2/tenants": tenants.TABLE,
        "/admin/v2/namespaces": (
            *namespaces.TABLE,
            *access.NAMESPACES,
            *namespace_policies.table(levels),
            *resource_groups.OF_NAMESPACES,
            *single_cluster.NAMESPACES,
        ),
        "/admin/v2/persistent": of_topics,
        "/admin/v2/non-persistent": of_topics,
        "/admin/v2/bookies": bookies.TABLE,
        "/admin/v2/brokers": brokers.BROKERS,
        "/admin/v2/broker-stats": brokers.STATS,
        "/admin/v2/mqtt": mqtt.TABLE,
        "/admin/v2/proxy-stats": websocket_stats.TABLE,
        "/admin/v2/proxy-stats/persistent": websocket_stats.TOPICS,
        "/admin/v2/proxy-stats/non-persistent": websocket_stats.TOPICS,
        "/admin/v2/reading": reading.TABLE,
        "/admin/v2/resourcegroups": resource_groups.TABLE,
        "/admin/v2/schemas": topic_schemas.TABLE,
        "/admin/v2/writing": writing.TABLE,
        "/admin/v3/transactions": transaction_stats.TABLE,
        **subjects.TABLES,
        **unsupported.TABLES,
        "/admin/namespaces": (*single_cluster.ANTI_AFFINITY, *unsupported.OLD),
    }
