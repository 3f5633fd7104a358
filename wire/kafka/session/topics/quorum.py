"""DescribeQuorum: who keeps the metadata, in the words of Kafka's quorum.

One node does, in a store of its own, so it votes for itself, leads, and lags behind nobody. There
is no log of metadata with offsets: its end is told as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import NONE, UNKNOWN_TOPIC
from magnetar.wire.kafka.messages.quorum import (
    AskedQuorumTopic,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumPartition,
    QuorumReplica,
    QuorumTopic,
)
from magnetar.wire.kafka.partition.logs import EPOCH

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.session import KafkaSession
    from magnetar.wire.kafka.wire import KafkaRequest

LOG: Final = "__cluster_metadata"
END: Final = 0


async def on_describe_quorum(session: KafkaSession, asked: KafkaRequest) -> DescribeQuorumResponse:
    request = asked.request
    assert isinstance(request, DescribeQuorumRequest)
    host, port = session.address
    reached = QuorumListener(name="PLAINTEXT", host=host, port=port)
    return DescribeQuorumResponse(
        error_code=NONE,
        topics=[
            QuorumTopic(
                topic_name=topic.topic_name,
                partitions=[
                    _partition(session, topic, part.partition_index)
                    async for part in Cooperative(topic.partitions)
                ],
            )
            async for topic in Cooperative(request.topics)
        ],
        nodes=[QuorumNode(node_id=session.front.options.node_id, listeners=[reached])],
    )


def _partition(session: KafkaSession, topic: AskedQuorumTopic, index: int) -> QuorumPartition:
    if (topic.topic_name, index) != (LOG, 0):
        return QuorumPartition(
            partition_index=index,
            error_code=UNKNOWN_TOPIC,
            leader_id=-1,
            leader_epoch=-1,
            high_watermark=-1,
            current_voters=[],
            observers=[],
        )
    node, now_ms = session.front.options.node_id, session.broker.clock.wall_ms()
    itself = QuorumReplica(
        replica_id=node,
        log_end_offset=END,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return QuorumPartition(
        partition_index=index,
        error_code=NONE,
        leader_id=node,
        leader_epoch=EPOCH,
        high_watermark=END,
        current_voters=[itself],
        observers=[],
    )


HANDLERS: Final[Mapping[int, Any]] = {ApiKey.DESCRIBE_QUORUM: on_describe_quorum}
