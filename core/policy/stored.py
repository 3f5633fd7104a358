"""Policies that are stored as tools send them. Most have no effect in this server. Pure."""

from __future__ import annotations

from typing import Any, Final

from magnetar.core.kernel.throttle import RateLimit
from magnetar.core.policy.declaration import Policy, Scope
from magnetar.core.policy.rates import DispatchRate, show_dispatch_rate
from magnetar.core.policy.values import OffloadPolicies, SchemaAutoUpdate

LEDGERS: Final = "ledgers are not offloaded, as by an Apache broker without an offload driver"
"""Such a broker (4.2) has a `NullLedgerOffloader`: thresholds are stored and change nothing."""
CLUSTERS: Final = "there is one cluster; others are refused here"
OWN_CLUSTER: Final = "own cluster"
"""The default of `replication`: a list of the one cluster that the server belongs to."""


def stored(name: str, reason: str, kind: Any, **more: Any) -> Policy:
    """A policy that is stored as tools send it."""
    return Policy(name=name, reason=reason, kind=kind, **{"loose": True, **more})


# fmt: off
STORED: Final = (
    stored(
        "replication", CLUSTERS, list[str],
        topic=Scope("replication"),
        namespace=Scope("replication_clusters", "replication", initial=[]),
        loose=False, read=lambda value: value or None, default=OWN_CLUSTER, absent=[],
    ),
    stored("allowed_clusters", CLUSTERS, list[str],
           namespace=Scope("allowed_clusters", "allowedClusters", unset=[])),
    stored("anti_affinity", "one broker has all namespaces: there is nothing to keep apart", str,
           namespace=Scope("antiAffinityGroup", "antiAffinity"), plain=True),
    stored(
        "replicator_dispatch_rate", "nothing is sent to other clusters", dict[str, Any],
        topic=Scope("replicatorDispatchRate"), namespace=Scope("replicatorDispatchRate"),
        shape=DispatchRate, complete=True, per_cluster=True,
        default=show_dispatch_rate(RateLimit()),
    ),
    stored("schema_auto_update_compatibility_strategy", "", SchemaAutoUpdate,
           effect="Decides `schemaCompatibilityStrategy` for a namespace that has none.",
           namespace=Scope("schema_auto_update_compatibility_strategy",
                           "schemaAutoUpdateCompatibilityStrategy", unset="Full")),
    stored("offload_policies", LEDGERS, dict[str, Any], shape=OffloadPolicies,
           topic=Scope("offloadPolicies"), namespace=Scope("offload_policies", "offloadPolicies")),
    stored("offload_threshold", LEDGERS, int, wide=True, signed=True,
           namespace=Scope("offload_threshold", "offloadThreshold", unset=-1)),
    stored("offload_threshold_in_seconds", LEDGERS, int, wide=True, signed=True,
           namespace=Scope("offload_threshold_in_seconds", "offloadThresholdInSeconds", unset=-1)),
    stored("offload_deletion_lag_ms", LEDGERS, int, wide=True, signed=True,
           namespace=Scope("offload_deletion_lag_ms", "offloadDeletionLagMs")),
    stored("subscription_auth_mode", "", str,
           effect="Prefix: the name of a subscription begins with its user's role.",
           namespace=Scope("subscription_auth_mode", "subscriptionAuthMode", unset="None")),
    stored("shadow_topics", "", list[str],
           effect="Lists the shadows of a topic (`shadowTopics`), which show its messages anyway.",
           topic=Scope("shadowTopics", None)),
)
# fmt: on
