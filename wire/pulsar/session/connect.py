"""CONNECT, PING, PONG and AUTH_RESPONSE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.errors import NotAllowed
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.errors import code_of
from magnetar.wire.pulsar.session.authentication.authentication import PulsarAuthentication

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.options import PulsarOptions
    from magnetar.wire.pulsar.session.requests import RequestQueue

PROTOCOL_VERSION: Final = 21
VERSION_LETTERS_MAX: Final = 128
"""Of what a client says it is, which is kept with its connection, its producers and consumers."""


class ConnectHandlers:
    """CONNECT, PING, PONG, AUTH_RESPONSE."""

    __slots__ = ("_client", "_known", "_options", "authentication")

    def __init__(
        self,
        client: PulsarClient,
        requests: RequestQueue,
        options: PulsarOptions,
        clock: Clock,
        known: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        """`known` is called when the client is, `changed` when its roles are others later."""
        self._client = client
        self._known = known
        self._options = options
        self.authentication = PulsarAuthentication(
            client, requests, options, clock, self._welcome, changed
        )

    def on_connect(self, event: events.Connect) -> None:
        """Find out who the client is; without authentication, credentials are ignored.

        A connection beyond the limits is refused here, since clients accept an error in reply to
        CONNECT.
        """
        client, options = self._client, self._options
        refusal = client.connection.refusal
        if refusal:
            client.reply(replies.error(replies.UNASKED, code_of(NotAllowed()), refusal))
            client.connection.end(refusal)
            return
        client.version = event.client_version[:VERSION_LETTERS_MAX]
        client.protocol_version = min(PROTOCOL_VERSION, event.protocol_version)
        client.features = event.features
        client.wire.exposes_broker_metadata = (
            options.expose_broker_metadata and event.features.broker_entry_metadata
        )
        self.authentication.begin(event)

    def _welcome(self) -> None:
        self._known()
        self._client.reply(
            replies.connected(
                self._options.server_version,
                self._client.protocol_version,
                self._options.wire.message_bytes_max,
                events.Features(topic_watchers=True, partitioned_metadata_without_creation=True),
            )
        )

    def close(self) -> None:
        """The connection is closed: tell nobody."""
        self._known = lambda: None
        self.authentication.close()

    def on_ping(self, _event: events.Ping) -> None:
        self._client.answer_ping()

    def on_pong(self, _event: events.Pong) -> None:
        """Wake `liveness.py`, which may wait for it; the link has noted the received bytes."""
        self._client.note_pong()

    def on_auth_response(self, event: events.AuthResponse) -> None:
        self.authentication.respond(event)


HANDLERS: Final[Mapping[type, Any]] = {
    events.Connect: ConnectHandlers.on_connect,
    events.Ping: ConnectHandlers.on_ping,
    events.Pong: ConnectHandlers.on_pong,
    events.AuthResponse: ConnectHandlers.on_auth_response,
}
