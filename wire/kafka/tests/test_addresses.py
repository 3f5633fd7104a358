"""Addresses are read as operators write them."""

import pytest

from magnetar.wire.kafka.addresses import Endpoint, parsed


@pytest.mark.parametrize(
    ("text", "told"),
    [("mq.example:9092", Endpoint("mq.example", 9092)), ("[::1]:1", Endpoint("::1", 1))],
)
def test_an_address_is_a_host_and_a_port(text: str, told: Endpoint) -> None:
    assert parsed(text) == told
