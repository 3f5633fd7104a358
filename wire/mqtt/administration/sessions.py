"""The sessions of MQTT clients, as administrators list, read and end them.

A connected client is shown as it is; a session without a connection, by its record.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from itertools import islice
from typing import Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import NotAllowed, NotFound
from magnetar.core.ports.client_administration import (
    ASLEEP,
    CONNECTED,
    InFlightDetails,
    Page,
    SessionDetails,
    SessionQuery,
    SessionSummary,
    SubscriptionDetails,
    WillDetails,
)
from magnetar.wire.mqtt.administration.pages import NAMES_PER_TURN, PageSelection
from magnetar.wire.mqtt.administration.places import place_details
from magnetar.wire.mqtt.clients import record as records
from magnetar.wire.mqtt.clients.record import SessionRecord, StoredWill
from magnetar.wire.mqtt.clients.sessions import NEVER_MS
from magnetar.wire.mqtt.codec.packets import NEVER_EXPIRES, Version
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.session.client import ConnectedClient

IN_FLIGHT_SHOWN_MAX: Final = 100
RECORDS_PER_TURN: Final = 50
"""Sessions that are described before other tasks run."""
VERSIONS: Final = {Version.V3_1: "3.1", Version.V3_1_1: "3.1.1", Version.V5: "5.0"}
SAID: Final = "an administrator"


class MqttSessionAdministration:
    """See the module's docstring."""

    def __init__(self, services: MqttServices) -> None:
        self._services = services
        self._sessions = services.sessions

    # -- listing ------------------------------------------------------------------------------

    async def sessions(self, query: SessionQuery) -> Page[SessionSummary]:
        names, following = await self._page(query)
        found = []
        async for name in Cooperative(names, RECORDS_PER_TURN):
            summary = await self._summary(name)
            if summary is not None:
                found.append(summary)
        return Page(found, following)

    async def _page(self, query: SessionQuery) -> tuple[list[str], str | None]:
        """The client ids that a query asks for; those of sleeping sessions are in storage."""
        connected = self._sessions.connected
        selection = PageSelection(query.after, query.limit)
        if query.state != ASLEEP:
            async for name in Cooperative(list(connected), NAMES_PER_TURN):
                if name.startswith(query.prefix):
                    selection.offer(name)
        if query.state != CONNECTED:
            async with aclosing(self._sessions.records.sleeping()) as sleeping:
                async for name, _ in sleeping:
                    if name.startswith(query.prefix) and name not in connected:
                        selection.offer(name)
        return selection.page()

    async def _summary(self, client_id: str) -> SessionSummary | None:
        """None if the session has ended meanwhile."""
        client = self._client(client_id)
        record = await self._sessions.records.read(client_id) if client is None else None
        if client is not None:
            return SessionSummary(
                client_id,
                CONNECTED,
                client.connection.peer,
                VERSIONS[client.version],
                len(client.subscriber.subscriptions.by_filter),
                len(client.subscriber.ids),
                None,
            )
        if record is None:
            return None
        subscriptions, in_flight = len(record.subscriptions), len(record.in_flight)
        expires_at = self._expires_at(record)
        return SessionSummary(client_id, ASLEEP, None, None, subscriptions, in_flight, expires_at)

    def _client(self, client_id: str) -> ConnectedClient | None:
        found = self._sessions.connected.get(client_id)
        return found if isinstance(found, ConnectedClient) and not found.gone else None

    # -- one session --------------------------------------------------------------------------

    async def session(self, client_id: str) -> SessionDetails:
        client, record = await self._found(client_id)
        stored = client_id in self._sessions.records
        broker = self._services.broker
        return SessionDetails(
            client_id=client_id,
            state=ASLEEP if client is None else CONNECTED,
            address=None if client is None else client.connection.peer,
            protocol_version=None if client is None else VERSIONS[client.version],
            keep_alive_seconds=None if client is None else client.keep_alive,
            connected_since=None if client is None else client.connected_ms,
            expiry_seconds=_unless_never(record.expiry_seconds),
            disconnected_at=record.ended_ms or None,
            expires_at=None if client else self._expires_at(record),
            record_bytes=len(records.encode(record)) if stored else 0,
            subscriptions=_subscriptions(record),
            places=[
                await place_details(broker, one.log, (one.ledger_id, one.entry_id), one.place)
                for one in record.places
                if one.entry_id >= 0  # others are only the logs of messages in flight
            ],
            in_flight=len(record.in_flight),
            in_flight_messages=list(_in_flight(record)),
            receiving=len(record.received),
            sent=None if client is None else client.subscriber.sent,
            will=_will(record.will),
        )

    async def _found(self, client_id: str) -> tuple[ConnectedClient | None, SessionRecord]:
        client = self._client(client_id)
        record = client.record() if client else await self._sessions.records.read(client_id)
        if record is None:
            raise NotFound(f"there is no session of {client_id!r}")
        return client, record

    def _expires_at(self, record: SessionRecord) -> int | None:
        """When a session without a connection expires; None for never."""
        expires_ms = self._sessions.expires_ms(record)
        return None if expires_ms >= NEVER_MS else expires_ms

    # -- ending -------------------------------------------------------------------------------

    async def end_session(self, client_id: str) -> None:
        """As if the client had begun a new session: the will is published (3.1.2.5)."""
        sessions = self._sessions
        async with sessions.turn_of(client_id):
            client = self._client(client_id)
            if client is None and client_id not in sessions.records:
                raise NotFound(f"there is no session of {client_id!r}")
            if client is not None:
                client.end(f"{SAID} has ended the session", ReasonCode.ADMINISTRATIVE_ACTION)
                client.leave()
            await sessions.take(client_id, clean=True)

    async def disconnect(self, client_id: str) -> None:
        client, _record = await self._found(client_id)
        if client is None:
            raise NotAllowed(f"{client_id!r} is not connected")
        client.end(f"{SAID} has closed the connection", ReasonCode.ADMINISTRATIVE_ACTION)


def _unless_never(seconds: int) -> int | None:
    return None if seconds == NEVER_EXPIRES else seconds


def _subscriptions(record: SessionRecord) -> list[SubscriptionDetails]:
    return [
        SubscriptionDetails(
            one.filter, one.qos, one.no_local, one.retain_as_published, one.identifier or None
        )
        for one in record.subscriptions
    ]


def _in_flight(record: SessionRecord) -> Iterator[InFlightDetails]:
    for one in islice(record.in_flight, IN_FLIGHT_SHOWN_MAX):
        topic, position = record.places[one.log].log, (one.ledger_id, one.entry_id)
        yield InFlightDetails(one.packet_id, one.qos, one.released, topic, *position, one.place)


def _will(will: StoredWill | None) -> WillDetails | None:
    if will is None:
        return None
    return WillDetails(will.topic, will.payload, will.qos, will.retain, will.delay_seconds)
