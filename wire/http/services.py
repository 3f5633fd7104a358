"""The state that all HTTP connections of a broker share. Light: it is imported at start-up."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.clock import SystemClock
from magnetar.wire.http.limits.connection_limit import ConnectionLimit
from magnetar.wire.http.limits.memory import Memory
from magnetar.wire.http.limits.pauses import Pauses
from magnetar.wire.http.metrics.exposition import Family
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.round_trip import HealthCheck


class HttpServices:
    """See the module's docstring."""

    def __init__(
        self,
        broker: Broker,
        options: HttpOptions,
        extra_metrics: Callable[[], Iterable[Family]] = tuple,
        health: HealthCheck | None = None,
    ) -> None:
        self.broker = broker
        self.options = options
        self.extra_metrics = extra_metrics
        """Returns metrics of parts that HTTP does not know: the link, the storage tier."""
        self.health = health or HealthCheck()
        """Shared by all requests."""
        self.room = ConnectionLimit(options.connections_max)
        """Counts connections served and refused."""
        self.memory = Memory(options.memory_bytes_max)
        """The memory of bodies and answers."""
        self.pauses = Pauses(SystemClock())
        """The longest pauses of the loop by requests."""
