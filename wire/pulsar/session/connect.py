"""Introductions and signs of life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from magnetar.core.kernel.errors import NotAllowed
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.errors import code_of
from magnetar.wire.pulsar.wire import WireState

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.session import PulsarSession

PROTOCOL_VERSION: Final = 21


def on_connect(session: PulsarSession, event: events.Connect) -> None:
    """Anybody is welcome while authentication is off; credentials are not looked at.

    A connection too many is refused here: clients listen to an error in answer to their CONNECT.
    """
    refusal = session.connection.refusal
    if refusal:
        session.reply(replies.error(replies.UNASKED, code_of(NotAllowed()), refusal))
        session.connection.end(refusal)
        return
    session.peer_version = event.client_version
    session.protocol_version = min(PROTOCOL_VERSION, event.protocol_version)
    session.features = event.features
    session.wire.exposes_broker_metadata = (
        session.options.expose_broker_metadata and event.features.broker_entry_metadata
    )
    session.reply(
        replies.connected(
            session.options.server_version,
            session.protocol_version,
            session.options.wire.message_bytes_max,
            events.Features(partitioned_metadata_without_creation=True),
        )
    )


def on_ping(session: PulsarSession, _event: events.Ping) -> None:
    session.wire.pong()
    session.connection.touch()


def on_pong(session: PulsarSession, _event: events.Pong) -> None:
    """Hearing it was the point: the link has noted that bytes came. Somebody may wait for it."""
    session.pong.set()
    session.pong = trio.Event()


def on_auth_response(_session: PulsarSession, _event: events.AuthResponse) -> None:
    """No challenge was sent, so nothing is learned."""


def on_quiet(session: PulsarSession) -> None:
    """Ping a silent client; one that never introduced itself has had its time."""
    if session.wire.state is WireState.CONNECTING:
        session.connection.end("it did not introduce itself")
        return
    session.wire.ping()
    session.connection.touch()


HANDLERS: Final[Mapping[type, Any]] = {
    events.Connect: on_connect,
    events.Ping: on_ping,
    events.Pong: on_pong,
    events.AuthResponse: on_auth_response,
}
