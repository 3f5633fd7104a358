"""The options of the MQTT front."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.rights.acl_file import AclFile

DAY_SECONDS: Final = 86_400


class MqttOptions(Struct, frozen=True):
    """See the module's docstring."""

    namespace: str = "public/default"
    """Where the topics of the mapping rules are."""
    rules: tuple[MappingRule, ...] = ()
    """Before the default rule, in order."""
    acl: AclFile | None = None
    """Rules for MQTT topics, besides the rights to the topics that store them."""
    confined: bool = False
    """Whether clients see this namespace only: it is a mount point, with state of its own."""
    packet_bytes_max: int = 5 * 1024 * 1024
    """The largest packet that clients may send (Maximum Packet Size)."""
    receive_maximum: int = 1_000
    """Messages of QoS 1 and 2 that a client may send before the first is acknowledged."""
    inflight_max: int = 1_000
    """Messages of QoS 1 and 2 in flight to a client that permits as many (Receive Maximum)."""
    topic_alias_maximum: int = 64
    """Topic aliases that a client may set, and the most that are set for one that accepts some."""
    keep_alive_seconds_max: int = 0
    """The longest keep-alive interval; clients that want more, or none, are told this one. 0 for no
    limit."""
    session_expiry_seconds_max: int = 7 * DAY_SECONDS
    """The longest life of a session after its connection; also that of a session of MQTT 3 without
    clean session. 0 for no limit."""
    subscriptions_max: int = 10_000
    """Subscriptions of one session."""
    subscriptions_size_max: int = 1024 * 1024
    """Bytes of the subscriptions of one session in its record."""
    subscriptions_bytes_max: int = 256 * 1024 * 1024
    """Memory for the subscriptions of all connected clients."""
    sleeping_bytes_max: int = 16 * 1024 * 1024
    """Memory for the records of sleeping sessions; others are read from storage."""
    sessions_bytes_max: int = 1024 * 1024 * 1024
    """Size of the records of all sessions; beyond it, no new one is kept."""
    aliases_bytes_max: int = 32 * 1024 * 1024
    """Memory for the topics to which all connected clients have given an alias."""
    unreleased_bytes_max: int = 64 * 1024 * 1024
    """Memory for the identifiers of QoS 2 that connected clients have not released, of 4 bytes."""
    windows_bytes_max: int = 256 * 1024 * 1024
    """Memory for the messages in flight to all connected clients, if each uses its whole window.
    Clients that come later have small windows."""
    wills_bytes_max: int = 128 * 1024 * 1024
    """Memory for the wills, and long client ids, of all connected clients."""
    pending_messages_max: int = 10_000
    """Publishes of one connection that wait for storage; beyond this, reading pauses."""
    sys_interval_seconds: float = 10.0
    """How often `$SYS` is published; 0 for never."""
    version: str = "Magnetar"
    """As `$SYS/broker/version` names it."""
    retained_bytes_max: int = 64 * 1024 * 1024
    """Retained messages in memory; others are read from storage."""
    retained_names_bytes_max: int = 256 * 1024 * 1024
    """Memory for the topics of all retained messages; more are refused."""
