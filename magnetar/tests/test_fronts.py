"""The list of fronts, and the doors that they have."""

from magnetar.fronts import DOORS
from magnetar.settings.server import OPTIONAL_PORTS, PORTS, TLS_PORTS, Listen, Tls


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
