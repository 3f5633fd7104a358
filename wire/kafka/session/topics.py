"""Metadata: which topics there are, and who serves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from core import administration, listing
from core.errors import AlreadyExists, BrokerError, TopicNotFound
from core.names import NamespaceName, TopicName
from wire.kafka.errors import NONE, code_of
from wire.kafka.messages.basics import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribedBroker,
    FoundBroker,
    FoundPartition,
    FoundTopic,
    MetadataRequest,
    MetadataResponse,
)

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

DEFAULT_NAMESPACE: Final = "public/default"
NO_OPERATIONS: Final = -2147483648
"""Nobody asked what may be done."""


async def on_metadata(session: KafkaSession, asked: Asked) -> MetadataResponse:
    request = asked.request
    assert isinstance(request, MetadataRequest)
    options = session.front.options
    everything = request.topics is None or (asked.version == 0 and not request.topics)
    if everything:
        names = await _all_names(session)
    else:
        assert request.topics is not None
        names = [topic.name or "" for topic in request.topics]
    create = request.allow_auto_topic_creation and not everything
    return MetadataResponse(
        brokers=[FoundBroker(node_id=options.node_id, host=options.host, port=options.port)],
        cluster_id=options.cluster_id,
        controller_id=options.node_id,
        topics=[await _described(session, name, create=create) for name in names],
    )


async def _all_names(session: KafkaSession) -> list[str]:
    """Topics of the namespace that needs no prefix, partitions as one."""
    names = await listing.topics_of(session.broker, NamespaceName.parse(DEFAULT_NAMESPACE))
    parsed = (TopicName.parse(name) for name in names)
    return sorted({name.base.local for name in parsed if name.persistent})


async def _described(session: KafkaSession, name: str, *, create: bool) -> FoundTopic:
    told = FoundTopic(error_code=NONE, name=name, partitions=[])
    try:
        count = await _partitions(session, name, create=create)
    except BrokerError as error:
        told.error_code = code_of(error)
        return told
    node = session.front.options.node_id
    told.partitions = [
        FoundPartition(
            error_code=NONE,
            partition_index=index,
            leader_id=node,
            leader_epoch=0,
            replica_nodes=[node],
            isr_nodes=[node],
        )
        for index in range(count)
    ]
    return told


async def _partitions(session: KafkaSession, text: str, *, create: bool) -> int:
    """How many partitions a topic has for Kafka's clients; it may be created by being asked for."""
    broker = session.broker
    name = TopicName.parse(text)
    count = await broker.catalog.partitions(name)
    if count or await broker.exists(name):
        return count or 1
    policies = await broker.catalog.effective(name)
    if not create or not policies.auto_topic_creation.allowed:
        raise TopicNotFound(f"topic {text} does not exist")
    wanted = session.front.options.partitions
    try:
        await administration.create_partitioned(broker, name, wanted)
    except AlreadyExists:
        return await broker.catalog.partitions(name) or 1
    return wanted


async def on_describe_cluster(session: KafkaSession, asked: Asked) -> DescribeClusterResponse:
    request = asked.request
    assert isinstance(request, DescribeClusterRequest)
    options = session.front.options
    return DescribeClusterResponse(
        error_code=NONE,
        endpoint_type=request.endpoint_type,
        cluster_id=options.cluster_id,
        controller_id=options.node_id,
        brokers=[DescribedBroker(broker_id=options.node_id, host=options.host, port=options.port)],
    )


HANDLERS: Final[Mapping[int, Any]] = {3: on_metadata, 60: on_describe_cluster}
