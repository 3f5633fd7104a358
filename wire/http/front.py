"""The HTTP front: what all its connections share, and what an operator may turn. Light: it is
imported at start-up, and the web stack with the first connection (`app.py`).

HTTP may not know the Pulsar wire, the link's life or the storage tier; what it must ask of them are
the functions of `HttpOptions` and `HttpFront`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Protocol

from msgspec import Struct

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.spare_files import Lend
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.link.front import Door, Listener
from magnetar.wire.http.app import serve_http
from magnetar.wire.http.connection_limit import ConnectionLimit
from magnetar.wire.http.memory import Memory
from magnetar.wire.http.metrics.exposition import Family
from magnetar.wire.http.pauses import Pauses
from magnetar.wire.http.round_trip import HealthCheck
from magnetar.wire.http.server.guard import HostNames


class MessageMetadata(Protocol):
    """What a producer said about a message: the part that peeking shows."""

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
    """An entry taken apart; the payload as its producer compressed and encrypted it."""

    @property
    def broker_timestamp(self) -> int | None: ...
    @property
    def index(self) -> int | None: ...
    @property
    def metadata(self) -> MessageMetadata: ...
    @property
    def payload(self) -> bytes: ...


def always_ready() -> str | None:
    """For servers whose storage cannot fail: tests."""
    return None


def never_committed(_ledger: ManagedLedger, _cursor: Cursor) -> int | None:
    """For servers without Kafka."""
    return None


class HttpOptions(Struct, frozen=True):
    """What an operator may turn, and what the composition root knows."""

    version: str = "Magnetar"
    broker_url: str = ""
    """Where Pulsar clients are sent: `pulsar://host:port`."""
    broker_url_tls: str = ""
    kafka_address: str = ""
    """`host:port`, for people: Kafka's clients learn it by their own protocol."""
    kafka_address_tls: str = ""
    http_url: str = ""
    http_url_tls: str = ""
    hosts: HostNames = HostNames()
    """Names by which requests may ask for this server, besides addresses and `localhost`."""
    connections_max: int = 1_000
    """More are refused; idle ones leave after `idle_seconds`."""
    idle_seconds: float = 75.0
    """A connection is closed that has no further request for so long; for the first it has less."""
    body_bytes_max: int = 1024 * 1024
    """A larger request is refused with 413."""
    message_bytes_max: int = 5 * 1024 * 1024
    """What a producer may send: no topic may allow more."""
    memory_bytes_max: int = 16 * 1024 * 1024
    """For the bodies of all requests together, and again for all answers: beyond it, 503."""
    configuration: Mapping[str, str] = {}
    """The settings in force, for admin tools to show."""
    readiness: Callable[[], str | None] = always_ready
    """Why the server cannot take writes now; None while it can."""
    read_entry: Callable[[bytes], StoredMessage] | None = None
    """Takes a stored entry apart; without it messages are not shown."""
    committed_offset: Callable[[ManagedLedger, Cursor], int | None] = never_committed
    """Where a group of Kafka's goes on that has committed to a cursor."""

    @property
    def broker_id(self) -> str:
        """`host:port`, as brokers call each other."""
        return (self.http_url or self.http_url_tls).partition("://")[2]


class HttpFront:
    """Everything a handler may use; a `Front` that accepts by itself."""

    listeners: Sequence[Listener] = ()

    def __init__(
        self,
        broker: Broker,
        options: HttpOptions,
        extra_metrics: Callable[[], Iterable[Family]] = tuple,
        doors: Sequence[Door] = (),
        lend: Lend = nullcontext,
        health: HealthCheck | None = None,
    ) -> None:
        self.broker = broker
        self.options = options
        self.extra_metrics = extra_metrics
        """Metrics of parts that HTTP does not know: the link, the storage tier."""
        self.health = health or HealthCheck()
        """Shared by all who ask."""
        self.room = ConnectionLimit(options.connections_max)
        """How many are served, and refused."""
        self.memory = Memory(options.memory_bytes_max)
        """For bodies and answers."""
        self.pauses = Pauses(SystemClock())
        """The same."""
        self._doors = doors
        self._lend = lend
        """Room for what is imported late."""

    async def open(self) -> None:
        """Nothing is loaded before somebody connects."""

    async def run(self) -> None:
        await serve_http(self, self._doors, self._lend)

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()
