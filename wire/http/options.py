"""The options of the HTTP front: operator's settings, and functions of other rooms.

HTTP may not import the Pulsar wire, the link or the storage tier. The composition root passes in
the functions of theirs that it calls.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from magnetar.core.ports.bookie_administration import ClusterAdministration
from magnetar.core.ports.client_administration import ClientAdministration
from magnetar.core.ports.ledger_places import LedgerPlaces
from magnetar.wire.http.guard import HostNames

if TYPE_CHECKING:
    from magnetar.core.ledger.cursor.cursor import Cursor
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.read.tickets import TicketOffice
    from magnetar.core.link.layers.tls import TlsParts
    from magnetar.core.transactions.sinks import Sinks
    from magnetar.core.transactions.topic_transactions import TopicTransactions


class MessageMetadata(Protocol):
    """A producer's metadata of a message: the part that peeking shows."""

    @property
    def producer_name(self) -> str: ...
    @property
    def sequence_id(self) -> int: ...
    @property
    def publish_time(self) -> int: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def event_time(self) -> int: ...
    @property
    def deliver_at_time(self) -> int | None: ...
    @property
    def batch_size(self) -> int | None: ...
    @property
    def partition_key(self) -> str | None: ...
    @property
    def partition_key_is_base64(self) -> bool: ...
    @property
    def ordering_key(self) -> bytes | None: ...
    @property
    def null_value(self) -> bool: ...
    @property
    def compression(self) -> int: ...
    @property
    def uncompressed_size(self) -> int: ...
    @property
    def encryption_keys(self) -> tuple[str, ...]: ...
    @property
    def schema_version(self) -> bytes | None: ...
    @property
    def uuid(self) -> str | None: ...
    @property
    def chunk_id(self) -> int: ...
    @property
    def chunk_count(self) -> int: ...
    @property
    def chunks_bytes(self) -> int: ...
    @property
    def replicated_from(self) -> str | None: ...


class StoredMessage(Protocol):
    """A parsed entry; its payload is still compressed and encrypted as the producer sent it."""

    @property
    def broker_timestamp(self) -> int | None: ...
    @property
    def index(self) -> int | None: ...
    @property
    def metadata(self) -> MessageMetadata: ...
    @property
    def payload(self) -> bytes: ...


def always_ready() -> str | None:
    """Readiness of servers whose storage cannot fail: for tests."""
    return None


def never_committed(_ledger: ManagedLedger, _cursor: Cursor) -> int | None:
    """Committed offsets of servers without Kafka."""
    return None


PassOn = Callable[[socket.socket, "TlsParts | None", bytes], None]
"""Takes over a connection whose first request begins with these bytes. If it is one of TLS, the
bytes are in its parts."""
WEBSOCKETS: Final = b"GET /ws/"
"""The beginning of a request that is passed on."""


class HttpOptions(Struct, frozen=True):
    """The operator's settings, and facts that the composition root knows."""

    version: str = "Magnetar"
    broker_url: str = ""
    """The address given to Pulsar clients: `pulsar://host:port`."""
    broker_url_tls: str = ""
    kafka_address: str = ""
    """`host:port`, for people: Kafka clients learn it through their own protocol."""
    kafka_address_tls: str = ""
    mqtt_address: str = ""
    mqtt_address_tls: str = ""
    mqtt_ws_url: str = ""
    mqtt_ws_url_tls: str = ""
    http_url: str = ""
    http_url_tls: str = ""
    hosts: HostNames = HostNames()
    """Host names that requests may use, besides addresses and `localhost`."""
    connections_max: int = 1_000
    """Connections beyond it are refused; idle ones are closed after `idle_seconds`."""
    idle_seconds: float = 75.0
    """How long a connection may wait for its next request; for its first it has less time."""
    body_bytes_max: int = 1024 * 1024
    """A larger body is refused with 413."""
    message_bytes_max: int = 5 * 1024 * 1024
    """The largest message that a producer may send; no topic may allow more."""
    memory_bytes_max: int = 16 * 1024 * 1024
    """Memory for the bodies of all requests, and as much for all answers; beyond it, 503."""
    open_paths: frozenset[str] = frozenset(["/healthz"])
    """Paths that need no identity although the server asks for one: `/metrics` and `/healthz`, as
    far as they are open."""
    proxy_roles: frozenset[str] = frozenset()
    """Roles of proxies, which say for whom they speak (`X-Original-Principal`)."""
    configuration: Mapping[str, str] = {}
    """The settings in force, for admin tools to show."""
    readiness: Callable[[], str | None] = always_ready
    """Returns why the server cannot accept writes now; None while it can."""
    read_entry: Callable[[bytes], StoredMessage] | None = None
    """Parses a stored entry; without it messages are not shown."""
    committed_offset: Callable[[ManagedLedger, Cursor], int | None] = never_committed
    """The offset that a Kafka group has committed to a cursor, if any."""
    mqtt_clients: Mapping[str, ClientAdministration] = {}
    """The administration of MQTT's clients, by the namespaces that listeners serve."""
    tickets: TicketOffice | None = None
    """Where readers of ledgers get what they show to bookies; None if bookies ask for nothing."""
    transactions: TopicTransactions | None = None
    """The transactions of Pulsar's clients; None if they are off."""
    ledger_places: LedgerPlaces | None = None
    """Where ledgers are, for those who read them themselves."""
    sinks: Sinks | None = None
    """Writers in batches, if there is a listener of the protocol that they write in."""
    pass_on: PassOn | None = None
    """Serves WebSockets; without it there are none."""
    late_modules: tuple[str, ...] = ()
    """What that imports with the first of them, else on the loop."""
    bookies: ClusterAdministration | None = None
    """The cluster of bookies that a gateway stores on."""

    @property
    def broker_id(self) -> str:
        """`host:port`, the form in which brokers identify each other."""
        return (self.http_url or self.http_url_tls).partition("://")[2]
