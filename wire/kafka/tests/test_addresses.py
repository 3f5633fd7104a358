"""Addresses are read as operators write them."""

import pytest

from magnetar.wire.kafka.addresses import Endpoint, parsed


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [("mq.example:9092", Endpoint("mq.example", 9092)), ("[::1]:1", Endpoint("::1", 1))],
)
def test_an_address_is_a_host_and_a_port(text: str, endpoint: Endpoint) -> None:
    assert parsed(text) == endpoint
