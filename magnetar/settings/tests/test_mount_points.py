"""The listeners that `mqtt.mount_points` names."""

import pytest

from magnetar.settings.mount_points import MountListener, mount_listeners


def test_listeners_of_two_namespaces() -> None:
    found = mount_listeners({"acme/devices": "1884 tls:8885", "other/ns": "ws:0 wss:0"})
    assert found == [
        MountListener("acme/devices", "mqtt", 1884),
        MountListener("acme/devices", "mqtt_tls", 8885),
        MountListener("other/ns", "mqtt_ws", 0),
        MountListener("other/ns", "mqtt_wss", 0),
    ]
    assert found[1].door == "mqtt_tls@acme/devices"


@pytest.mark.parametrize(
    ("mount_points", "message"),
    [
        ({"acme": "1884"}, "acme"),
        ({"acme/devices": ""}, "acme/devices has no port"),
        ({"acme/devices": "1884 1885"}, "acme/devices has two ports of a kind"),
        ({"acme/devices": "ssl:1884"}, "acme/devices has 'ssl:1884', not a port"),
        ({"acme/devices": "70000"}, "acme/devices has '70000', not a port"),
        ({"acme/devices": "x"}, "acme/devices has 'x', not a port"),
    ],
)
def test_what_names_no_listener(mount_points: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mount_listeners(mount_points)
