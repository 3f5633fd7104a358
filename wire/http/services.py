"""The state that all HTTP connections of a server share. Light: it is imported at start-up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.ports.bookie_administration import BookieAdministration
from magnetar.core.security.access import Access
from magnetar.wire.http.limits.connection_limit import ConnectionLimit
from magnetar.wire.http.limits.memory import Memory
from magnetar.wire.http.limits.pauses import Pauses
from magnetar.wire.http.limits.shared_pages import SharedPages
from magnetar.wire.http.login_sessions import LoginSessions
from magnetar.wire.http.metrics.exposition import Family
from magnetar.wire.http.options import HttpOptions

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.http.round_trip import HealthCheck


NOT_ASKED: Final = Access()


class HttpServices:
    """See the module's docstring."""

    def __init__(
        self,
        broker: Broker | None,
        options: HttpOptions,
        extra_metrics: Callable[[], Iterable[Family]] = tuple,
        health: HealthCheck | None = None,
        bookie: BookieAdministration | None = None,
        access: Access = NOT_ASKED,
    ) -> None:
        """Either a broker is served or a bookie that has none; `access` is the bookie's."""
        self._broker = broker
        self._bookie = bookie
        self._access = access
        self._health = health
        self._sessions: LoginSessions | None = None
        self.options = options
        self.extra_metrics = extra_metrics
        """Returns metrics of parts that HTTP does not know: the link, the storage tier."""
        self.room = ConnectionLimit(options.connections_max)
        """Counts connections served and refused."""
        self.memory = Memory(options.memory_bytes_max)
        """The memory of bodies and answers."""
        self.metrics_pages = SharedPages(options.memory_bytes_max)
        self.pauses = Pauses(SystemClock())
        """The longest pauses of the loop by requests."""

    @property
    def access(self) -> Access:
        """Who may do what."""
        return self._access if self._broker is None else self._broker.access

    @property
    def sessions(self) -> LoginSessions:
        """Those of web pages; made when the first one begins."""
        if self._sessions is None:
            self._sessions = LoginSessions(self.access.live, SystemClock())
        return self._sessions

    @property
    def broker(self) -> Broker:
        assert self._broker is not None, "a bookie has no paths of a broker"
        return self._broker

    @property
    def bookie(self) -> BookieAdministration:
        assert self._bookie is not None, "a broker has no paths of a bookie"
        return self._bookie

    @property
    def health(self) -> HealthCheck:
        """Shared by all requests."""
        if self._health is None:
            from magnetar.wire.http.round_trip import HealthCheck  # it imports a broker's parts

            self._health = HealthCheck()
        return self._health
