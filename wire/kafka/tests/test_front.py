"""The address that clients of each listener are given."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.testing.broker import running
from magnetar.core.testing.line import Line
from magnetar.wire.kafka.addresses import Endpoint
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.kafka.options import KafkaOptions


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
