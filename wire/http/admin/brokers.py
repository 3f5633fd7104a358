"""`/admin/v2/brokers` and `/admin/v2/broker-stats`: the brokers, and this one's loaded topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from operator import add
from typing import Any, Final

import msgspec
import trio
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import NotOwned
from magnetar.core.kernel.rates import Inflow
from magnetar.core.topic.topic import Topic
from magnetar.wire.http.admin.stats.topic_stats import described
from magnetar.wire.http.endpoints.health import health, readyz
from magnetar.wire.http.endpoints.lookup import BUNDLE
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import JSON, Table, not_here, plain_text

TOPICS_PER_REST: Final = 20
"""Topics described before yielding to the loop."""
COUNTED_PER_REST: Final = 200
"""Topics counted before yielding to the loop."""


async def listed(request: AdminRequest) -> list[str]:
    peers = (peer.broker_id for peer in request.broker.ownership.peers())
    return [request.options.broker_id, *(broker_id for broker_id in peers if broker_id)]


async def of_cluster(request: AdminRequest) -> list[str]:
    if request.part("cluster") != request.broker.settings.cluster:
        await request.broker.catalog.get_cluster(request.part("cluster"))
        raise HTTPException(412, f"cluster {request.part('cluster')} is not served here")
    return await listed(request)


async def leader(request: AdminRequest) -> dict[str, Any]:
    """Name this broker: none leads, and each can do what Pulsar's leader does."""
    options = request.options
    return {"brokerId": options.broker_id, "serviceUrl": options.http_url or options.http_url_tls}


async def owned(request: AdminRequest) -> dict[str, Any]:
    """The namespaces that this broker serves, each as its one bundle; 307 to another broker.

    Pulsar redirects too (`PulsarWebResource.validateBrokerName` of 4.x), to whatever host the path
    names. Here only a known peer is redirected to; any other name stands for this broker, since
    clients may reach it by a name that it does not know.

    A broker that is alone serves all; else those of its loaded topics, since topics are owned one
    by one.
    """
    broker, ours = request.broker, request.options.broker_id
    peers = {peer.broker_id: peer for peer in broker.ownership.peers()}
    peer = peers.get(request.part("broker"))
    if peer is not None:
        raise NotOwned(f"this is broker {ours}", peer.addresses)
    spaces: list[str] = []
    if peers:
        spaces += sorted({str(topic.name.namespace) for topic in broker.topics.values()})
    else:
        for tenant in await broker.catalog.tenants():
            spaces += await broker.catalog.namespaces(tenant)
    status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    return {f"{space}/{BUNDLE}": status for space in spaces}


async def version(request: AdminRequest) -> Response:
    return plain_text(request.options.version)


async def nothing_dynamic(_ask: AdminRequest) -> list[str]:
    """The settings that can be changed while the server runs: none."""
    return []


async def no_values(_ask: AdminRequest) -> dict[str, str]:
    return {}


async def runtime(request: AdminRequest) -> dict[str, str]:
    """The settings in force."""
    return dict(request.options.configuration)


async def internal(_ask: AdminRequest) -> dict[str, Any]:
    """The address of a cluster's metadata store; this server has its own inside."""
    return {
        "metadataStoreUrl": "",
        "configurationMetadataStoreUrl": "",
        "ledgersRootPath": "/ledgers",
        "bookkeeperMetadataServiceUri": "",
        "stateStorageServiceUrl": "",
    }


async def not_dynamic(_ask: AdminRequest) -> None:
    raise not_here("settings are changed in the configuration file, not while the server runs")


async def check_quotas(request: AdminRequest) -> None:
    """Check all backlog quotas now, not in the next round."""
    async for topic in Cooperative(list(request.broker.topics.values()), 1):
        if topic.stored is not None and not topic.fenced:
            await request.broker.housekeeping.check_quota(topic.stored)


# -- broker-stats ------------------------------------------------------------------------------


async def all_topics(request: AdminRequest) -> Response:
    """Namespace -> bundle -> domain -> topic -> stats, for all loaded topics."""
    found: dict[str, dict[str, list[Topic]]] = {}
    async for topic in Cooperative(list(request.broker.topics.values()), COUNTED_PER_REST):
        domains = found.setdefault(str(topic.name.namespace), {})
        domains.setdefault(topic.name.domain, []).append(topic)
    return StreamingResponse(
        request.services.pauses.pieces(_written(request, found)), media_type=JSON
    )


async def _written(
    request: AdminRequest, found: Mapping[str, Mapping[str, list[Topic]]]
) -> AsyncIterator[bytes]:
    """Its JSON, some topics at a time: with thousands of topics it is many megabytes."""
    yield b"{"
    for namespaces, (namespace, domains) in enumerate(found.items()):
        yield b"," * bool(namespaces) + _key(namespace) + b"{" + _key(BUNDLE) + b"{"
        for number, (domain, topics) in enumerate(domains.items()):
            yield b"," * bool(number) + _key(domain) + b"{"
            for start in range(0, len(topics), TOPICS_PER_REST):
                part = [
                    _key(topic.name.full) + msgspec.json.encode(await described(request, topic))
                    for topic in topics[start : start + TOPICS_PER_REST]
                ]
                yield b"," * bool(start) + b",".join(part)
                await trio.lowlevel.checkpoint()
            yield b"}"
        yield b"}}"
    yield b"}"


def _key(name: str) -> bytes:
    return msgspec.json.encode(name) + b":"


async def per_namespace(request: AdminRequest) -> list[dict[str, Any]]:
    """The sums that Pulsar's own monitoring collects: for the whole broker, then by namespace."""
    sums: dict[str, Counter[str]] = {"": Counter()}
    async for topic in Cooperative(list(request.broker.topics.values()), TOPICS_PER_REST):
        figures = _figures(topic)
        sums[""].update(figures)
        sums.setdefault(str(topic.name.namespace), Counter()).update(figures)
    cluster = {"cluster": request.broker.settings.cluster}
    return [
        {
            "metrics": {f"brk_{name}": found[name] for name in FIGURES},
            "dimensions": {**cluster, "namespace": namespace} if namespace else cluster,
        }
        for namespace, found in sums.items()
    ]


FIGURES: Final = (
    "no_of_topics", "no_of_subscriptions", "no_of_producers", "no_of_consumers", "in_rate",
    "in_tp_rate", "out_rate", "out_tp_rate", "storage_size", "msg_backlog",
)  # fmt: skip


def _figures(topic: Topic) -> dict[str, Any]:
    into, subscriptions = topic.rates.per_second, topic.subscriptions.values()
    out = [each.rates.per_second for each in subscriptions]
    return {
        "no_of_topics": 1,
        "no_of_subscriptions": len(topic.subscriptions),
        "no_of_producers": len(topic.producers),
        "no_of_consumers": sum(len(each.consumers) for each in subscriptions),
        "in_rate": into.messages,
        "in_tp_rate": into.bytes,
        "out_rate": sum(each.messages for each in out),
        "out_tp_rate": sum(each.bytes for each in out),
        "storage_size": topic.storage_size,
        "msg_backlog": sum(each.cursor.backlog for each in subscriptions),
    }


async def nothing_measured(_ask: AdminRequest) -> list[Any]:
    """Metrics of a Java process: none. This server's are at `/metrics`."""
    return []


async def load_report(request: AdminRequest) -> dict[str, Any]:
    topics = list(request.broker.topics.values())
    options = request.options
    total = Inflow()
    producers = consumers = 0
    async for topic in Cooperative(topics, COUNTED_PER_REST):
        total = Inflow(*map(add, total, topic.rates.per_second))
        producers += len(topic.producers)
        consumers += sum(len(each.consumers) for each in topic.subscriptions.values())
    return {
        "webServiceUrl": options.http_url,
        "webServiceUrlTls": options.http_url_tls,
        "pulsarServiceUrl": options.broker_url,
        "pulsarServiceUrlTls": options.broker_url_tls,
        "msgRateIn": total.messages,
        "msgThroughputIn": total.bytes,
        "numTopics": len(topics),
        "numProducers": producers,
        "numConsumers": consumers,
        "brokerVersionString": options.version,
    }


async def no_allocator(_ask: AdminRequest) -> None:
    raise not_here("there is no allocator to tell of: memory is Python's")


async def no_balance(_ask: AdminRequest) -> None:
    raise not_here("no load is balanced between brokers: there is one")


async def no_shutdown(_ask: AdminRequest) -> None:
    raise not_here("this server is stopped by a signal (SIGTERM), not over HTTP")


BROKERS: Final[Table] = (
    ("GET", "", listed, Needs.SUPERUSER),
    ("GET", "/health", health, Needs.SUPERUSER),
    ("GET", "/ready", readyz, Needs.HEALTH),
    ("GET", "/version", version, Needs.IDENTITY),
    ("GET", "/leaderBroker", leader, Needs.SUPERUSER),
    ("GET", "/configuration", nothing_dynamic, Needs.SUPERUSER),
    ("GET", "/configuration/values", no_values, Needs.SUPERUSER),
    ("GET", "/configuration/runtime", runtime, Needs.SUPERUSER),
    ("GET", "/internal-configuration", internal, Needs.SUPERUSER),
    ("GET POST", "/backlog-quota-check", check_quotas, Needs.SUPERUSER),
    ("POST", "/shutdown", no_shutdown, Needs.SUPERUSER),
    ("POST", "/configuration/{key}/{value}", not_dynamic, Needs.SUPERUSER),
    ("DELETE", "/configuration/{key}", not_dynamic, Needs.SUPERUSER),
    ("GET", "/{cluster}", of_cluster, Needs.SUPERUSER),
    ("GET", "/{cluster}/{broker}/ownedNamespaces", owned, Needs.SUPERUSER),
)
STATS: Final[Table] = (
    ("GET", "/topics", all_topics, Needs.SUPERUSER),
    ("GET", "/destinations", all_topics, Needs.SUPERUSER),
    ("GET", "/metrics", per_namespace, Needs.SUPERUSER),
    ("GET", "/mbeans", nothing_measured, Needs.SUPERUSER),
    ("GET", "/load-report", load_report, Needs.SUPERUSER),
    ("GET", "/allocator-stats/{allocator}", no_allocator, Needs.SUPERUSER),
    ("GET", "/broker-resource-availability/{tenant}/{name}", no_balance, Needs.SUPERUSER),
)
