"""The address that clients of each listener are given."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from magnetar.core.quotas.limits import QuotaEntity, QuotaKey
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import running
from magnetar.core.testing.line import Line
from magnetar.wire.kafka.addresses import Endpoint
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.kafka.messages.basics import ApiVersionsRequest
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.kafka.tests.frame import framed


@pytest.mark.parametrize(
    ("options", "results"),
    [
        (KafkaOptions(), Endpoint("127.0.0.1", 9092)),
        (KafkaOptions(host="mq.example"), Endpoint("mq.example", 9092)),
        (KafkaOptions(advertised={"kafka": "[::1]:1"}), Endpoint("::1", 1)),
        (KafkaOptions(advertised={"kafka_tls": "a:1"}, host="b"), Endpoint("b", 9092)),
    ],
)
async def test_a_client_is_told_what_its_listener_advertises(
    options: KafkaOptions, results: Endpoint
) -> None:
    connection: Any = Line()
    async with running() as broker:
        _, session = KafkaFront(broker, options).listener("kafka")(connection)
        assert session.caller.endpoint == results


async def test_connections_beyond_the_quota_of_an_address(mock_clock: MockClock) -> None:
    async with running() as broker:
        front = KafkaFront(broker, KafkaOptions())
        quotas = front.services.quotas
        quotas.rules.put(QuotaEntity(address="1.2.3.4"), {QuotaKey.CONNECTIONS: 1.0})
        quotas.changed()
        lines: list[Any] = [Line() for _ in range(11)]
        other: Any = Line("1.2.3.5:1")
        wires = [front.counted("kafka")(line)[0] for line in (*lines, other)]
        said = framed(ApiVersionsRequest(), 2)
        assert {wire.feed(said) for wire in wires} == {len(said)}
        assert [len(wire.take_events()) for wire in wires] == [1] * 10 + [0, 1]
        await settled()
        assert not any(line.ending for line in lines), "who comes again at once gains nothing"
        mock_clock.jump(1)
        await settled()
        assert [line.ending for line in lines if line.ending] == [
            "too many new connections from its address"
        ]
