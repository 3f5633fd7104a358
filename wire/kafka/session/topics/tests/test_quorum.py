"""A quorum of one."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.errors import UNKNOWN_TOPIC
from magnetar.wire.kafka.messages.quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)


async def requested(client: Client, name: str, index: int, version: int = 2) -> tuple[Any, Any]:
    part = DescribeQuorumPartition(partition_index=index)
    topic = DescribeQuorumTopic(topic_name=name, partitions=[part])
    results = await client.exchange(DescribeQuorumRequest(topics=[topic]), version)
    assert results.error_code == 0
    return results.topics[0].partitions[0], results.nodes


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_it_leads_and_votes_for_itself(stage: Stage, version: int) -> None:
    results, nodes = await requested(await stage.client(), "__cluster_metadata", 0, version)
    assert (results.error_code, results.leader_id, results.observers) == (0, 0, [])
    assert [one.replica_id for one in results.current_voters] == [0]
    assert {one.log_end_offset for one in results.current_voters} == {results.high_watermark}
    assert [one.node_id for one in nodes] == ([0] if version == 2 else [])


@pytest.mark.parametrize(("name", "index"), [("t", 0), ("__cluster_metadata", 1)])
async def test_there_is_one_such_log(stage: Stage, name: str, index: int) -> None:
    results, _ = await requested(await stage.client("t"), name, index)
    assert (results.error_code, results.current_voters) == (UNKNOWN_TOPIC, [])
