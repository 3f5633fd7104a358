"""WebSockets: the wire and the session of a connection that the HTTP front has passed on.

The session is that of any client of the binary protocol; the layer under its wire is the client
(`wire/pulsar/websocket`). While messages wait to be delivered again, one task of their connection
sleeps.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from magnetar.core.link.layers.tls import TlsParts, TlsWire
from magnetar.core.link.layers.websocket_options import Permits
from magnetar.core.security.conversation import CERTIFICATE, AuthPeer

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection
    from magnetar.core.link.wire import Session, Wire
    from magnetar.wire.pulsar.session.front import PulsarFront
    from magnetar.wire.pulsar.session.session import PulsarSession
    from magnetar.wire.pulsar.websocket.layer import PulsarWebSocket

log = logging.getLogger(__name__)

LAYER: Final = "magnetar.wire.pulsar.websocket.layer"
"""With what it imports it takes a tenth of the time to the first message, so it comes later."""
CHANCES: Final = 1 << 40
LOOK_SECONDS: Final = 10.0
"""After so long a task looks whether its connection is still there."""


class WebSockets(NamedTuple):
    """Makes wire and session of each; see the module's docstring."""

    front: PulsarFront
    permits: Permits
    """Which web pages may connect."""

    def connect(self, tls: TlsParts | None, connection: Connection) -> tuple[Wire, Session]:
        from magnetar.wire.pulsar.websocket.layer import PulsarWebSocket, WebSocketSurroundings

        wire, session = self.front.connect(connection)
        broker = self.front.services.broker
        alarm = Alarm(broker.spawn, connection)
        layer = PulsarWebSocket(
            wire,
            WebSocketSurroundings(
                broker.settings.cluster,
                self.permits,
                Carrying(connection, session),
                lambda: not connection.outbox,
                connection.keep,
                connection.end,
                broker.clock.wall_ms,
                alarm.wake_in,
                secrets.randbelow(CHANCES),
                self.front.services.held_entries,
                tls is not None
                and CERTIFICATE in broker.access.mechanisms
                and AuthPeer(connection.host, tls.tls).certificate is not None,
            ),
        )
        alarm.layer = layer
        around = WebSocketSession(session, layer, alarm)
        return (layer if tls is None else TlsWire.resumed(tls, layer)), around


class WebSocketSession:
    """The session of any client of the binary protocol; its layer hears of the end, too."""

    __slots__ = ("_alarm", "_layer", "session")

    def __init__(self, session: PulsarSession, layer: PulsarWebSocket, alarm: Alarm) -> None:
        self.session = session
        self._layer = layer
        self._alarm = alarm

    @property
    def silence_seconds_allowed(self) -> float:
        return self.session.silence_seconds_allowed

    def handle(self, event: Any) -> None:
        self.session.handle(event)

    def quiet(self) -> None:
        self.session.quiet()

    def relieved(self) -> None:
        self.session.relieved()

    def closed(self, reason: str) -> None:
        self._layer.over()
        self._alarm.over()
        self.session.closed(reason)


class Carrying:
    """Carries out events between sweeps, as the link does in them."""

    __slots__ = ("_connection", "_session")

    def __init__(self, connection: Connection, session: PulsarSession) -> None:
        self._connection = connection
        self._session = session

    def __call__(self, events: Iterable[Any]) -> None:
        for event in events:
            if self._connection.ending is not None:
                return
            self._session.handle(event)


class Alarm:
    """Wakes a layer at a time; a later call replaces an earlier one."""

    __slots__ = ("_at", "_connection", "_scope", "_spawn", "layer")

    def __init__(self, spawn: Callable[..., None], connection: Connection) -> None:
        self._spawn = spawn
        self._connection = connection
        self._at = 0.0
        self._scope: trio.CancelScope | None = None
        self.layer: PulsarWebSocket | None = None

    def wake_in(self, milliseconds: int) -> None:
        self._at = trio.current_time() + milliseconds / 1000
        if self._scope is None:
            self._scope = trio.CancelScope()
            self._spawn(self._sleep, self._scope)
        self._scope.deadline = min(self._at, trio.current_time() + LOOK_SECONDS)

    def over(self) -> None:
        """The connection is gone: hold nothing of it."""
        self.layer = None
        if self._scope is not None:
            self._scope.cancel()

    async def _sleep(self, scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep_forever()
        self._scope = None
        layer = self.layer
        if layer is None or not self._connection.open or self._connection.ending is not None:
            return
        left = self._at - trio.current_time()
        if left > 0:
            self.wake_in(round(left * 1000))
            return
        try:
            layer.woken()
        except Exception:  # as the link does: this is a task of the broker
            log.exception("%s: closed, this server failed", self._connection.peer)
            self._connection.link.drop(self._connection, "this server failed")
            return
        self._connection.touch()
