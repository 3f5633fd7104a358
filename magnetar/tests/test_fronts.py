"""The list of fronts, and the doors that they have."""

from __future__ import annotations

from typing import Any

from magnetar.core.testing.broker import running
from magnetar.fronts import DOORS, Parts, make_fronts
from magnetar.settings.registry import Settings
from magnetar.settings.server import OPTIONAL_PORTS, PORTS, TLS_PORTS, Listen, Tls
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.pulsar.session.front import PulsarFront


def test_each_port_is_the_door_of_one_front() -> None:
    """Nobody would answer at a door that is no front's."""
    plain = [f"{door.name}_port" for door in DOORS if door.client_auth is None]
    assert sorted(plain) == sorted((*PORTS, *OPTIONAL_PORTS))
    ports = (*PORTS, *OPTIONAL_PORTS, *TLS_PORTS)
    assert sorted(f"{door.name}_port" for door in DOORS) == sorted(ports)


def test_each_door_has_the_settings_of_its_name() -> None:
    for door in DOORS:
        assert door.port(Listen(**{f"{door.name}_port": 7})) == 7
        if door.client_auth is not None:
            protocol = door.name.removesuffix("_tls").removesuffix("_wss")
            mode = f"{protocol}_client_auth"
            assert door.client_auth(Tls(**{mode: "requested"})) == "requested"


async def test_transactions_end_where_nobody_may_connect() -> None:
    unused: Any = None
    async with running() as broker:
        parts = Parts(Settings(), {}, link=unused, storage=unused, broker=broker, lend=unused)
        fronts = make_fronts(parts)
        assert list(map(type, fronts)) == [PulsarFront, KafkaFront]
        for front in fronts:
            await front.open()
            assert list(front.listeners) == []
        assert parts.pulsar == [], "WebSockets are not served, either"
