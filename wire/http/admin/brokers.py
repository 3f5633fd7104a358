"""`/admin/v2/brokers` and `/admin/v2/broker-stats`: this one server, as the cluster it is."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import trio
from starlette.exceptions import HTTPException
from starlette.responses import Response

from core.topic.topic import Topic
from wire.http.admin.topic_stats import described
from wire.http.asking import Ask
from wire.http.health import health, readyz
from wire.http.lookup import BUNDLE
from wire.http.routes import Table, not_here, plain_text

TOPICS_PER_REST: Final = 20
"""Topics described before the loop gets its turn."""


async def listed(ask: Ask) -> list[str]:
    return [ask.options.broker_id]


async def of_cluster(ask: Ask) -> list[str]:
    if ask.part("cluster") != ask.broker.settings.cluster:
        await ask.broker.catalog.get_cluster(ask.part("cluster"))
        raise HTTPException(412, f"cluster {ask.part('cluster')} is not served here")
    return await listed(ask)


async def leader(ask: Ask) -> dict[str, Any]:
    options = ask.options
    return {"brokerId": options.broker_id, "serviceUrl": options.http_url or options.http_url_tls}


async def owned(ask: Ask) -> dict[str, Any]:
    """Every namespace, whole."""
    catalog = ask.broker.catalog
    spaces: list[str] = []
    for tenant in await catalog.tenants():
        spaces += await catalog.namespaces(tenant)
    status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    return {f"{space}/{BUNDLE}": status for space in spaces}


async def version(ask: Ask) -> Response:
    return plain_text(ask.options.version)


async def nothing_dynamic(_ask: Ask) -> list[str]:
    """Which settings can be changed while the server runs."""
    return []


async def no_values(_ask: Ask) -> dict[str, str]:
    return {}


async def runtime(ask: Ask) -> dict[str, str]:
    """The settings in force."""
    return dict(ask.options.configuration)


async def internal(_ask: Ask) -> dict[str, Any]:
    """Where a cluster's metadata would be; this server keeps its own."""
    return {
        "metadataStoreUrl": "",
        "configurationMetadataStoreUrl": "",
        "ledgersRootPath": "/ledgers",
        "bookkeeperMetadataServiceUri": "",
        "stateStorageServiceUrl": "",
    }


async def not_dynamic(_ask: Ask) -> None:
    raise not_here("settings are changed in the configuration file, not while the server runs")


async def check_quotas(ask: Ask) -> None:
    """Look at all backlog quotas now, not with the next round."""
    for topic in list(ask.broker.topics.values()):
        await trio.lowlevel.checkpoint()
        if isinstance(topic, Topic) and not topic.fenced:
            await ask.broker.housekeeping.check_quota(topic)


# -- broker-stats ------------------------------------------------------------------------------


async def all_topics(ask: Ask) -> dict[str, Any]:
    """Namespace -> bundle -> domain -> topic -> stats, of what is loaded."""
    found: dict[str, Any] = {}
    for count, topic in enumerate(list(ask.broker.topics.values())):
        if count % TOPICS_PER_REST == 0:
            await trio.lowlevel.checkpoint()
        bundles = found.setdefault(str(topic.name.namespace), {BUNDLE: {}})
        domain = bundles[BUNDLE].setdefault(topic.name.domain, {})
        # written at once, so that nothing is left to do for all of them at the end
        domain[topic.name.full] = msgspec.Raw(msgspec.json.encode(await described(ask, topic)))
    return found


async def nothing_measured(_ask: Ask) -> list[Any]:
    """Of a Java process; ours is at `/metrics`."""
    return []


async def load_report(ask: Ask) -> dict[str, Any]:
    topics = list(ask.broker.topics.values())
    options = ask.options
    return {
        "webServiceUrl": options.http_url,
        "webServiceUrlTls": options.http_url_tls,
        "pulsarServiceUrl": options.broker_url,
        "pulsarServiceUrlTls": options.broker_url_tls,
        "msgRateIn": sum(topic.rates.per_second.messages for topic in topics),
        "msgThroughputIn": sum(topic.rates.per_second.bytes for topic in topics),
        "numTopics": len(topics),
        "numProducers": sum(len(topic.producers) for topic in topics),
        "numConsumers": sum(
            len(each.consumers) for topic in topics for each in topic.subscriptions.values()
        ),
        "brokerVersionString": options.version,
    }


async def no_allocator(_ask: Ask) -> None:
    raise not_here("there is no allocator to tell of: memory is Python's")


BROKERS: Final[Table] = (
    ("GET", "", listed),
    ("GET", "/health", health),
    ("GET", "/ready", readyz),
    ("GET", "/version", version),
    ("GET", "/leaderBroker", leader),
    ("GET", "/configuration", nothing_dynamic),
    ("GET", "/configuration/values", no_values),
    ("GET", "/configuration/runtime", runtime),
    ("GET", "/internal-configuration", internal),
    ("GET POST", "/backlog-quota-check", check_quotas),
    ("POST", "/configuration/{key}/{value}", not_dynamic),
    ("DELETE", "/configuration/{key}", not_dynamic),
    ("GET", "/{cluster}", of_cluster),
    ("GET", "/{cluster}/{broker}/ownedNamespaces", owned),
)
STATS: Final[Table] = (
    ("GET", "/topics", all_topics),
    ("GET", "/destinations", all_topics),
    ("GET", "/metrics", nothing_measured),
    ("GET", "/mbeans", nothing_measured),
    ("GET", "/load-report", load_report),
    ("GET", "/allocator-stats/{allocator}", no_allocator),
)
