"""Groups that go over to the newer protocol, a thousand times, however the clock ticks."""

import struct

import magnetar
from interop_tests.hostile.test_kafka_bytes import Peer
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerSubscription
from magnetar.wire.kafka.messages.groups import JoinGroupRequest, JoinProtocol, SyncGroupRequest

JOINS = 1_000
WANTS = struct.pack(">h", 0) + b"".join(
    encoder(ConsumerSubscription, 0, False)(ConsumerSubscription(topics=["t"]))
)


def join(client, group, member_id=""):
    return client.ask(
        JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinProtocol(name="range", metadata=WANTS)],
        ),
        5,
    )


def test_nobody_is_turned_away_who_comes_by_the_newer_protocol():
    """In 2 of 140 joins the group had gone back before the one was in for whom it went over."""
    codes = []
    kafka = {"group_initial_rebalance_delay_ms": 0}
    with magnetar.standalone(kafka=kafka) as server, Peer(server) as older, Peer(server) as newer:
        older.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        for number in range(JOINS):
            group = f"g{number}"
            requested = join(older, group)
            joined = join(older, group, requested.member_id)
            assert joined.error_code == 0
            older.ask(
                SyncGroupRequest(
                    group_id=group,
                    generation_id=joined.generation_id,
                    member_id=joined.member_id,
                    assignments=[],
                ),
                3,
            )
            results = newer.ask(
                ConsumerGroupHeartbeatRequest(
                    group_id=group,
                    member_id=f"m{number}",
                    member_epoch=0,
                    subscribed_topic_names=["t"],
                    topic_partitions=[],
                    rebalance_timeout_ms=60_000,
                ),
                1,
            )
            codes.append(results.error_code)
    assert codes == [0] * JOINS
