"""DescribeQuorum: the metadata quorum (KIP-595) that Kafka's clients expect.

This node is reported as the only voter and as the leader, which never lags. There is no metadata
log with offsets, so its end is reported as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import NONE, UNKNOWN_TOPIC
from magnetar.wire.kafka.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
    QuorumListener,
    QuorumNode,
    QuorumPartition,
    QuorumReplica,
    QuorumTopic,
)
from magnetar.wire.kafka.partition.logs import EPOCH

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.wire.kafka.options import KafkaOptions
    from magnetar.wire.kafka.session.context import Handler, RequestContext

LOG: Final = "__cluster_metadata"
END: Final = 0


class QuorumHandlers:
    """DescribeQuorum."""

    def __init__(self, options: KafkaOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.DESCRIBE_QUORUM: self.on_describe_quorum,
        }

    async def on_describe_quorum(
        self, context: RequestContext, request: DescribeQuorumRequest
    ) -> DescribeQuorumResponse:
        host, port = context.caller.endpoint
        reached = QuorumListener(name="PLAINTEXT", host=host, port=port)
        return DescribeQuorumResponse(
            error_code=NONE,
            topics=[
                QuorumTopic(
                    topic_name=topic.topic_name,
                    partitions=[
                        self._partition(topic, part.partition_index)
                        async for part in Cooperative(topic.partitions)
                    ],
                )
                async for topic in Cooperative(request.topics)
            ],
            nodes=[QuorumNode(node_id=self._options.node_id, listeners=[reached])],
        )

    def _partition(self, topic: DescribeQuorumTopic, index: int) -> QuorumPartition:
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
        node, now_ms = self._options.node_id, self._clock.wall_ms()
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
