"""CONNECT: the checks, the session, and CONNACK.

    checked     protocol rules that concern more than the packet's bytes, and who it is
    taken       another connection with the client id has ended, the session is found or new
    restored    the subscriber has the session's places and messages in flight, and sends nothing
    stored      the record, for a session that lasts, and for a will
    CONNACK     then messages in flight are sent again, and later ones

Everything happens in the turn of the client id, so two connections with one id come one after the
other [MQTT-3.1.4-3]. Until CONNACK is sent, later packets of the connection wait (4.9).

Invariants: session present is 1 exactly if a stored session is resumed [MQTT-3.2.2-2, -3]; a record
of a resumed session has its whole state, also the one that is stored before CONNACK.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.errors import BrokerError, InvalidName, Unauthorized
from magnetar.core.kernel.pieces import size_of
from magnetar.core.security.identity import Identity
from magnetar.wire.mqtt.clients.record import SessionRecord, StoredWill
from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.packets import NEVER_EXPIRES, Connect, Version, Will
from magnetar.wire.mqtt.codec.properties import Property, packed
from magnetar.wire.mqtt.delivery.outgoing_publish import Addressee
from magnetar.wire.mqtt.delivery.subscriber import NO_LIMIT, Subscriber
from magnetar.wire.mqtt.delivery.topic_aliases import TopicAliases
from magnetar.wire.mqtt.errors import ConnectRefused
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.session.client import ConnectedClient
from magnetar.wire.mqtt.session.publish import Publisher
from magnetar.wire.mqtt.session.resumption import Resumption
from magnetar.wire.mqtt.traffic import Traffic

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection
    from magnetar.wire.mqtt.services import MqttServices
    from magnetar.wire.mqtt.session.authentication import Authentication
    from magnetar.wire.mqtt.wire import MqttWire

log = logging.getLogger(__name__)

CLIENT_ID_SMALL: Final = 256
"""Characters of a client id that are not counted, as parts of the connection."""
WINDOW_MAX: Final = 65_535
"""The Receive Maximum of a client that names none (3.1.2.11.3)."""
WINDOW_SMALL: Final = 20
"""The window for which no memory is reserved: mosquitto's `max_inflight_messages`."""
IN_FLIGHT_BYTES: Final = 350
"""What a message in flight takes at most."""


Enter = Callable[[ConnectedClient], bool]
"""Takes the client; returns False if its connection is closed."""


class ConnectionOutlet:
    """A connection as its subscriber uses it."""

    __slots__ = ("_connection", "_traffic", "_wire")

    def __init__(self, connection: Connection, wire: MqttWire, traffic: Traffic) -> None:
        self._connection = connection
        self._wire = wire
        self._traffic = traffic

    @property
    def congested(self) -> bool:
        return self._connection.congested

    def send(self, pieces: Sequence[bytes], packets: int) -> None:
        self._wire.pack(pieces)
        size = size_of(pieces)
        self._connection.packed(size)
        self._traffic.publish_bytes_sent += size
        self._traffic.publishes_sent += packets
        self._traffic.packets_sent += packets - len(pieces)  # the wire counts pieces

    def dropped(self, packets: int) -> None:
        self._traffic.publishes_dropped += packets


class Connecting:
    """One CONNECT. See the module's docstring."""

    def __init__(
        self,
        services: MqttServices,
        connection: Connection,
        wire: MqttWire,
        packet: Connect,
        authentication: Authentication,
    ) -> None:
        self._services = services
        self.authentication = authentication
        self._connection = connection
        self._wire = wire
        self._packet = packet
        self._assigned = ""
        """The client id that the server has chosen."""
        self.keep_alive = self._kept_alive()
        self._packet_bytes_max = packet.properties.get(Property.MAXIMUM_PACKET_SIZE, NO_LIMIT)

    async def run(self, enter: Enter) -> ConnectedClient | None:
        """Connect; None if it is refused. `enter` is called before CONNACK."""
        try:
            self._check()
            await self._check_owner()
            client_id = self._client_id()
            async with self._services.sessions.turn_of(client_id):
                return await self._connect(client_id, enter)
        except ConnectRefused as error:
            self.refuse(error.reason, str(error), error.reference)
        except InvalidName as error:
            self.refuse(ReasonCode.TOPIC_NAME_INVALID, str(error))
        except BrokerError as error:
            self.refuse(ReasonCode.SERVER_UNAVAILABLE, str(error))
        return None

    def refuse(self, reason: ReasonCode, text: str, reference: str = "") -> None:
        """Send CONNACK with a reason, and end the connection; what does not fit is left out."""
        required = {Property.SERVER_REFERENCE: reference} if reference else {}
        for properties in ({**required, Property.REASON_STRING: text}, required, {}):
            connack = encode.connack(self._packet.version, reason, properties=properties)
            if len(connack) <= self._packet_bytes_max:
                self._wire.pack((connack,))
                break
        self._wire.close()
        self._connection.complain("clients refused", f"CONNECT refused: {text}")
        self._connection.end(text)

    # -- checks -------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._connection.refusal:
            raise ConnectRefused(ReasonCode.SERVER_BUSY, self._connection.refusal)

    def _check_will(self, client: ConnectedClient) -> None:
        if self._packet.will is None:
            return
        try:
            self._services.check_may_publish(client.asker, self._packet.will.topic)
        except Unauthorized as error:
            raise ConnectRefused(ReasonCode.NOT_AUTHORIZED, str(error)) from error

    async def _check_owner(self) -> None:
        """Send the client to the broker that owns the sessions, if this one does not (4.11)."""
        services = self._services
        peer = await services.broker.ownership.topic(services.sessions.topic)
        if peer is not None:
            reason, reference = ReasonCode.USE_ANOTHER_SERVER, peer.addresses.get("mqtt", "")
            raise ConnectRefused(reason, "another server has the sessions", reference)

    def _client_id(self) -> str:
        packet = self._packet
        if packet.client_id:
            return packet.client_id
        if packet.version == Version.V3_1 or (
            packet.version == Version.V3_1_1 and not packet.clean_start
        ):
            reason = ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
            raise ConnectRefused(reason, "an empty client id needs a clean session")
        self._assigned = f"auto-{uuid.uuid4()}"
        return self._assigned

    def _kept_alive(self) -> int:
        """The keep-alive interval in seconds, perhaps the server's own (3.1.2.10)."""
        requested, limit = self._packet.keep_alive, self._services.options.keep_alive_seconds_max
        if limit and (not requested or requested > limit):
            return limit if self._packet.version == Version.V5 else requested
        return requested

    # -- connecting ---------------------------------------------------------------------------

    async def _connect(self, client_id: str, enter: Enter) -> ConnectedClient:
        packet = self._packet
        client = ConnectedClient(self._services, self._connection, self._wire, client_id)
        client.keep_alive = self.keep_alive
        client.expiry_seconds = self._expiry_seconds()
        client.lasts = client.expiry_seconds > 0
        client.identity = self.authentication.identity
        self._check_will(client)
        client.will = _stored_will(packet.will, client.identity, self._connection.host)
        wants = packet.properties.get(Property.REQUEST_PROBLEM_INFORMATION, 1)
        client.wants_problems = bool(wants)
        self._check_room_for(client)
        self._check_size_of(self._capabilities(client))
        self._take_memory_for(client)
        try:
            return await self._enter(client, enter)
        except BaseException:
            client.give_back_memory()
            raise

    async def _enter(self, client: ConnectedClient, enter: Enter) -> ConnectedClient:
        """Take the session, and send CONNACK. If that fails, the session sleeps again."""
        await self._check_session_is_its_own(client)
        found = await self._services.sessions.take(client.client_id, clean=self._packet.clean_start)
        client.publisher = Publisher(self._services, client)
        client.subscriber = self._subscriber(client, durable=client.lasts or found is not None)
        try:
            await self._resume(client, found, enter)
        except BaseException:
            await self._give_back(client, found)
            raise
        client.send(
            encode.connack(
                self._packet.version,
                ReasonCode.SUCCESS,
                session_present=found is not None,
                properties=self._capabilities(client),
            )
        )
        if not client.gone:
            client.subscriber.when_saved = client.when_saved
            client.subscriber.start()
        return client

    async def _check_session_is_its_own(self, client: ConnectedClient) -> None:
        """A session belongs to who began it: another may neither resume nor end it. One that began
        when nobody authenticated is for everybody, or its device could never come back.
        """
        access, sessions = self._services.broker.access, self._services.sessions
        if access.judge is None:
            return
        owner = await sessions.owner_of(client.client_id)
        if owner in (None, "", client.identity.name):
            return
        if not access.judge.is_superuser(client.identity):
            text = f"the session of {client.client_id} belongs to somebody else"
            raise ConnectRefused(ReasonCode.NOT_AUTHORIZED, text)

    async def _resume(
        self, client: ConnectedClient, found: SessionRecord | None, enter: Enter
    ) -> None:
        """Have the client take part, with its session, which is stored when this returns."""
        services = self._services
        generation = services.logs.generation
        resumption = None if found is None else Resumption(services, client, found)
        if resumption is not None:
            await resumption.load()
        if not enter(client):
            raise ConnectRefused(ReasonCode.UNSPECIFIED_ERROR, "the client is gone")
        services.sessions.enter(client.client_id, client)
        if resumption is not None:
            resumption.restore()
            client.rights_changed()
        if client.lasts or client.will is not None or found is not None:
            await services.sessions.records.prepare()
            if services.logs.generation != generation:  # the rules have changed meanwhile
                await client.read_new_logs()
                await services.groups.read_new_logs()
            await client.saved()

    def _check_room_for(self, client: ConnectedClient) -> None:
        """Refuse a session that would be kept, if there is no room for its record."""
        sessions = self._services.sessions
        is_new = client.lasts and client.client_id not in sessions.records
        if is_new and sessions.records.bytes_stored >= self._services.options.sessions_bytes_max:
            text = "this server keeps as many sessions as it may (mqtt.session_storage_mb)"
            raise ConnectRefused(ReasonCode.QUOTA_EXCEEDED, text)

    def _take_memory_for(self, client: ConnectedClient) -> None:
        """A will is in memory twice: by itself, and in the client's record; a long client id three
        times: as text, in the client's runs of messages, and for the local messages of others.
        """
        will, size = client.will, 0
        if will is not None:
            size = 2 * (len(will.topic) + len(will.payload) + len(will.properties))
        if len(client.client_id) > CLIENT_ID_SMALL:
            size += 3 * len(client.client_id.encode())
        if not self._services.will_memory.take(size):
            text = "no memory for another will, or a long client id"
            raise ConnectRefused(ReasonCode.QUOTA_EXCEEDED, text)
        client.will_bytes = size

    def _check_size_of(self, capabilities: Mapping[Property, Any]) -> None:
        """Refuse a client that does not accept the whole CONNACK [MQTT-3.1.2-24]."""
        connack = encode.connack(Version.V5, ReasonCode.SUCCESS, properties=capabilities)
        if len(connack) > self._packet_bytes_max:
            raise ConnectRefused(ReasonCode.PACKET_TOO_LARGE, "Maximum Packet Size is too small")

    async def _give_back(self, client: ConnectedClient, found: SessionRecord | None) -> None:
        """CONNECT fails: its session, if it has one, is kept as it was before."""
        sessions = self._services.sessions
        client.lasts = found is not None  # it keeps its place in shared subscriptions
        client.leave()
        sessions.leave_at_once(client.client_id, client)
        await sessions.give_back(client.client_id, found)

    def _expiry_seconds(self) -> int:
        """How long the session lasts after the connection; 0 for not at all."""
        packet, limit = self._packet, self._services.options.session_expiry_seconds_max
        if packet.version == Version.V5:
            requested: int = packet.properties.get(Property.SESSION_EXPIRY_INTERVAL, 0)
        else:
            requested = 0 if packet.clean_start else NEVER_EXPIRES
        return min(requested, limit) if limit else requested

    def _subscriber(self, client: ConnectedClient, *, durable: bool) -> Subscriber:
        properties, services = self._packet.properties, self._services
        subscriber = Subscriber(
            client.client_id.encode(),
            ConnectionOutlet(self._connection, self._wire, services.traffic),
            self._window(client),
            services.broker.clock,
            services.broker.spawn,
            durable=durable,
        )
        subscriber.hold()
        subscriber.addressee = Addressee(has_properties=client.version == Version.V5)
        subscriber.packet_bytes_max = self._packet_bytes_max
        aliases = properties.get(Property.TOPIC_ALIAS_MAXIMUM, 0)
        if aliases:
            maximum = min(aliases, services.options.topic_alias_maximum)
            subscriber.aliases = TopicAliases(maximum)
        return subscriber

    def _window(self, client: ConnectedClient) -> int:
        """How many messages may be in flight to the client: as many as it and this server permit,
        or few if other clients have windows for all the memory that there is.
        """
        asked = self._packet.properties.get(Property.RECEIVE_MAXIMUM, WINDOW_MAX)
        window: int = min(asked, self._services.options.inflight_max)
        if window <= WINDOW_SMALL:
            return window
        if not self._services.window_memory.take(window * IN_FLIGHT_BYTES):
            return WINDOW_SMALL
        client.window_bytes = window * IN_FLIGHT_BYTES
        return window

    def _capabilities(self, client: ConnectedClient) -> Mapping[Property, Any]:
        """What a client of 5.0 has to know (3.2.2.3)."""
        options = self._services.options
        if client.version != Version.V5:
            return {}
        found: dict[Property, Any] = {
            **self.authentication.properties,
            Property.RECEIVE_MAXIMUM: options.receive_maximum,
            Property.MAXIMUM_PACKET_SIZE: options.packet_bytes_max,
            Property.TOPIC_ALIAS_MAXIMUM: options.topic_alias_maximum,
        }
        requested = self._packet.properties.get(Property.SESSION_EXPIRY_INTERVAL, 0)
        if client.expiry_seconds != requested:
            found[Property.SESSION_EXPIRY_INTERVAL] = client.expiry_seconds
        if self._assigned:
            found[Property.ASSIGNED_CLIENT_IDENTIFIER] = self._assigned
        if self.keep_alive != self._packet.keep_alive:
            found[Property.SERVER_KEEP_ALIVE] = self.keep_alive
        return found


def _stored_will(will: Will | None, who: Identity, host: str) -> StoredWill | None:
    if will is None:
        return None
    properties = dict(will.properties)
    delay = properties.pop(Property.WILL_DELAY_INTERVAL, 0)
    encoded = packed(properties)
    size = len(encoded)
    body = encoded[size - _body_size(encoded) :]
    roles = () if who.roles == (who.name,) else who.roles
    where = host if who.method else ""
    return StoredWill(
        will.topic, will.payload, will.qos, will.retain, body, delay, who.name, roles, where
    )


def _body_size(encoded: bytes) -> int:
    """The size of encoded properties without their length."""
    at = 0
    while encoded[at] >= 128:
        at += 1
    return len(encoded) - at - 1
