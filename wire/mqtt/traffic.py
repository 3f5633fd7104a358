"""Counters of all MQTT connections since the start, for `$SYS` and for metrics."""

from __future__ import annotations


class Traffic:
    """See the module's docstring. Packets of a run count one by one."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections",
        "connects",
        "packets_received",
        "packets_sent",
        "publish_bytes_received",
        "publish_bytes_sent",
        "publishes_dropped",
        "publishes_received",
        "publishes_sent",
    )

    def __init__(self) -> None:
        self.connections = 0
        """Connections that were opened."""
        self.connects = 0
        """CONNECT packets."""
        self.packets_received = 0
        self.packets_sent = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.publish_bytes_received = 0
        self.publish_bytes_sent = 0
        """Of whole PUBLISH packets."""
        self.publishes_received = 0
        self.publishes_sent = 0
        self.publishes_dropped = 0
        """Not sent to a client: QoS 0 without room, or too large for it."""
