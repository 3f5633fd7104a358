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


async def asked(client: Client, name: str, index: int, version: int = 2) -> tuple[Any, Any]:
    part = DescribeQuorumPartition(partition_index=index)
    topic = DescribeQuorumTopic(topic_name=name, partitions=[part])
    told = await client.hears(DescribeQuorumRequest(topics=[topic]), version)
    assert told.error_code == 0
    return told.topics[0].partitions[0], told.nodes


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_it_leads_and_votes_for_itself(stage: Stage, version: int) -> None:
    told, nodes = await asked(await stage.client(), "__cluster_metadata", 0, version)
    assert (told.error_code, told.leader_id, told.observers) == (0, 0, [])
    assert [one.replica_id for one in told.current_voters] == [0]
    assert {one.log_end_offset for one in told.current_voters} == {told.high_watermark}
    assert [one.node_id for one in nodes] == ([0] if version == 2 else [])


@pytest.mark.parametrize(("name", "index"), [("t", 0), ("__cluster_metadata", 1)])
async def test_there_is_one_such_log(stage: Stage, name: str, index: int) -> None:
    told, _ = await asked(await stage.client("t"), name, index)
    assert (told.error_code, told.current_voters) == (UNKNOWN_TOPIC, [])
