"""The listeners of `mqtt.mount_points`: those of a namespace, whose clients see no other. Pure.

    {"acme/devices" = "1884 tls:8885 ws:8085 wss:8086"}

Invariant: `mount_listeners` returns what can be opened, or raises `ValueError` with a sentence.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import NamespaceName
from magnetar.settings.server import PORT_MAX

KINDS: Final = {"": "mqtt", "tls": "mqtt_tls", "ws": "mqtt_ws", "wss": "mqtt_wss"}
"""The door that each prefix of a port stands for."""
TLS_KINDS: Final = frozenset(("mqtt_tls", "mqtt_wss"))


class MountListener(NamedTuple):
    """One listener of a namespace."""

    namespace: str
    kind: str
    """That of the door, such as `mqtt_ws`."""
    port: int

    @property
    def door(self) -> str:
        """The name of its door, also in the ready file."""
        return f"{self.kind}@{self.namespace}"


def mount_listeners(mount_points: Mapping[str, str]) -> list[MountListener]:
    """All listeners, in the order of the setting."""
    found: list[MountListener] = []
    for namespace, ports in mount_points.items():
        try:
            NamespaceName.parse(namespace)
        except InvalidName as error:
            raise ValueError(str(error)) from None
        if not ports.split():
            raise ValueError(f"{namespace} has no port")
        for word in ports.split():
            listener = _listener(namespace, word)
            if listener.door in (each.door for each in found):
                raise ValueError(f"{namespace} has two ports of a kind")
            found.append(listener)
    return found


def _listener(namespace: str, word: str) -> MountListener:
    prefix, _, port = word.rpartition(":")
    if prefix not in KINDS or not port.isdecimal() or int(port) > PORT_MAX:
        raise ValueError(f"{namespace} has {word!r}, not a port, tls:port, ws:port or wss:port")
    return MountListener(namespace, KINDS[prefix], int(port))
