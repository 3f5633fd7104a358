"""Requests of Kafka's that name very many things: whoever asks for less is answered in between.

Nobody has to read the answer for that.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import magnetar
from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.hostile.test_memory import Steady
from magnetar.wire.kafka.messages.basics import (
    DescribeTopic,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from magnetar.wire.kafka.messages.configs import DescribeConfigsRequest, DescribeResource
from magnetar.wire.kafka.messages.parts import TopicPartitions
from magnetar.wire.kafka.messages.reassignments import DescribeLogDirsRequest, ElectLeadersRequest
from magnetar.wire.kafka.messages.transactions import DescribeTransactionsRequest
from magnetar.wire.kafka.tests.frame import framed

NAMES = [f"n{number}" for number in range(50_000)]
ASKING = 3
"""Peers."""
ROUNDS = 40
WAIT_SECONDS_MAX = 1.0
TOPICS = 2
"""Kind of a resource."""


@pytest.fixture
def server():
    with magnetar.standalone() as server:
        yield server


def of_partitions():
    return [TopicPartitions(topic=name, partitions=[0]) for name in NAMES]


@pytest.mark.parametrize(
    ("request_of", "version"),
    [
        pytest.param(
            lambda: MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in NAMES],
                allow_auto_topic_creation=False,
            ),
            12,
            id="metadata",
        ),
        pytest.param(
            lambda: DescribeTopicPartitionsRequest(
                topics=[DescribeTopic(name=name) for name in NAMES]
            ),
            0,
            id="partitions",
        ),
        pytest.param(lambda: DescribeLogDirsRequest(topics=of_partitions()), 4, id="log-dirs"),
        pytest.param(
            lambda: ElectLeadersRequest(
                election_type=0, topic_partitions=of_partitions(), timeout_ms=1_000
            ),
            2,
            id="leaders",
        ),
        pytest.param(
            lambda: DescribeTransactionsRequest(transactional_ids=NAMES), 0, id="transactions"
        ),
        pytest.param(
            lambda: DescribeConfigsRequest(
                resources=[
                    DescribeResource(
                        resource_type=TOPICS, resource_name="steady", configuration_keys=None
                    )
                ]
                * 10_000,
                include_synonyms=True,
                include_documentation=True,
            ),
            4,
            id="configs",
        ),
    ],
)
def test_others_are_answered_in_between(server, request_of, version):
    requested = framed(request_of(), version)
    with ExitStack() as stack:
        steady = Steady(server)
        stack.callback(steady.close)
        for _ in range(ASKING):
            stack.enter_context(Peer(server)).say(requested)
        assert steady.slowest_of(ROUNDS) < WAIT_SECONDS_MAX
