"""The session of one connection, as the link sees it: packets to their handlers, in order.

    exchanging   the client authenticates in several steps, and sends AUTH only
    connecting   CONNECT is being processed; later packets wait
    open         packets are handled
    busy         a packet waits for storage or for a log to be loaded; later ones wait
    ended        nothing is handled

SUBSCRIBE, UNSUBSCRIBE, and the first PUBLISH to a log, need tasks. All other packets are plain
calls. Packets that wait count as memory of the server, and their connection is not read.

Invariants: packets are handled in the order of the connection [MQTT-4.6.0-1 to -4]; after the end
nothing is packed.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.link.memory.pauses import PAUSE_REQUESTS
from magnetar.core.security.conversation import AuthPeer
from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.acknowledgements import Acknowledgements
from magnetar.wire.mqtt.codec.packets import (
    Acknowledgement,
    Auth,
    Connect,
    Disconnect,
    PacketType,
    Pingreq,
    Subscribe,
    Unsubscribe,
    Version,
)
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.codec.publishes import Publishes
from magnetar.wire.mqtt.errors import PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.session import subscribe
from magnetar.wire.mqtt.session.authentication import Authentication, AuthenticationFailed
from magnetar.wire.mqtt.session.connect import Connecting

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection
    from magnetar.wire.mqtt.delivery.packet_ids import Ended
    from magnetar.wire.mqtt.delivery.sent_messages import Sent
    from magnetar.wire.mqtt.services import MqttServices
    from magnetar.wire.mqtt.session.client import ConnectedClient
    from magnetar.wire.mqtt.session.publish import Publisher
    from magnetar.wire.mqtt.wire import Event, MqttWire

log = logging.getLogger(__name__)

PUBACK: Final = PacketType.PUBACK
PUBREL: Final = PacketType.PUBREL
PUBCOMP: Final = PacketType.PUBCOMP
PACKET_BYTES: Final = 512
"""Memory of a packet that waits, besides a run's bytes."""
FILTERS_TOGETHER: Final = 1_000
"""Beyond these, SUBSCRIBE and UNSUBSCRIBE that wait are handled in another turn."""


class MqttSession:
    """See the module's docstring."""

    __slots__ = (
        "_authentication",
        "_busy",
        "_connecting",
        "_ended",
        "_now",
        "_reserved",
        "_services",
        "_waiting",
        "_weight",
        "client",
        "connection",
        "heard",
        "keep_alive",
        "wire",
    )

    def __init__(self, services: MqttServices, connection: Connection, wire: MqttWire) -> None:
        self._services = services
        self.connection = connection
        self.wire = wire
        self.client: ConnectedClient | None = None
        """None until CONNECT is accepted."""
        self.keep_alive = 0
        """In seconds; 0 for none."""
        self._now = services.broker.clock.monotonic
        self.heard = self._now()
        """When the last packet was received."""
        self._busy = self._ended = False
        self._authentication: Authentication | None = None
        """None before CONNECT, and for a client that uses no method."""
        self._connecting: Connecting | None = None
        """The CONNECT whose authentication is not over."""
        self._waiting: deque[Event] | None = None
        """Packets that wait; None for none, because an idle connection is to be small."""
        self._weight = 0
        """Memory of the packets that wait."""
        self._reserved = 0
        """Memory of CONNECT, until the client is connected."""

    # -- packets ------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Handle a packet, or a run of PUBLISH, or queue it behind those before."""
        self.heard = self._now()
        if self._busy or self._waiting:
            self._wait(event)
        else:
            self._begin(event)

    def _wait(self, event: Event) -> None:
        weight = _weight(event)
        if not self.connection.has_room_to_wait(weight):
            self._fail(PacketError(ReasonCode.SERVER_BUSY, "no memory for packets that wait"))
            return
        self._weight += weight
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(event)
        self.connection.pause(PAUSE_REQUESTS)

    def _begin(self, event: Event) -> None:
        try:
            if self._connecting is not None:
                self._exchange(self._connecting, event)
            elif isinstance(event, Publishes):
                self._publish(event, 0)
            elif isinstance(event, Acknowledgements):
                self._acknowledge(self._client(), event.kind, event.ids)
            elif isinstance(event, Connect):
                self._begin_connecting(event)
            else:
                self._handle(event)
        except PacketError as error:
            self._fail(error)

    def _handle(self, event: Event) -> None:
        client = self._client()
        match event:
            case Acknowledgement():
                self._acknowledge(client, event.kind, (event.packet_id,), event.reason)
            case Pingreq():
                client.send(encode.PINGRESP)
            case Subscribe() | Unsubscribe():
                packets = self._with_following(event)
                self._hold_for(subscribe.on_requests(self._services, client, packets))
            case Disconnect():
                self._disconnect(client, event)
            case Auth():
                self._hold_for(self._authenticate_again(client, event))

    def _with_following(self, first: Subscribe | Unsubscribe) -> Sequence[Subscribe | Unsubscribe]:
        """A packet, and the same that wait right behind it."""
        found, filters = [first], len(first.filters)
        while self._waiting and filters < FILTERS_TOGETHER:
            event = self._waiting[0]
            if not isinstance(event, Subscribe | Unsubscribe):
                break
            self._waiting.popleft()
            self._release(_weight(event))
            found.append(event)
            filters += len(event.filters)
        return found

    def _client(self) -> ConnectedClient:
        assert self.client is not None, "packets wait until the client is connected"
        return self.client

    def _fail(self, error: PacketError) -> None:
        """End the connection for an error of the peer."""
        self._ended = True
        self._drop_waiting()
        self.connection.complain("packets refused", f"closed: {error}")
        if self.client is not None:
            self.client.end(str(error), error.reason)
        else:
            self.connection.end(str(error))

    # -- work that waits ----------------------------------------------------------------------

    def _hold_for(self, work: Awaitable[None]) -> None:
        """Run work as a task; later packets wait until it is done."""
        self._busy = True
        self._services.broker.spawn(self._done, work)

    async def _done(self, work: Awaitable[None]) -> None:
        try:
            await work  # the link settles what it writes: nothing is held back while it waits
        except PacketError as error:
            self._fail(error)
        except BrokerError as error:
            self._fail(PacketError(ReasonCode.UNSPECIFIED_ERROR, str(error)))
        except Exception:
            log.exception("%s: closed, this server failed", self.connection.peer)
            self._ended = True
            self.connection.end("this server failed")
        finally:
            self._busy = False
            self.connection.begin()
            try:
                self._go_on()
            finally:
                self.connection.settle()

    def _go_on(self) -> None:
        """Handle the packets that wait."""
        while self._waiting and not self._busy and not self._ended:
            event = self._waiting.popleft()
            self._release(_weight(event))
            self._begin(event)
        if self._ended:
            self._drop_waiting()
        if not self._waiting and not self._busy:
            self._waiting = None
            self.connection.resume(PAUSE_REQUESTS)

    def _release(self, weight: int) -> None:
        self._weight -= weight
        self.connection.has_answered(weight)

    def _drop_waiting(self) -> None:
        self._waiting = None
        self._release(self._weight)

    # -- CONNECT and DISCONNECT ---------------------------------------------------------------

    def _begin_connecting(self, packet: Connect) -> None:
        self._reserved = _connect_weight(packet)
        if not self.connection.has_room_to_wait(self._reserved):
            self._reserved = 0
            raise PacketError(ReasonCode.SERVER_BUSY, "no memory for clients that connect")
        authentication = Authentication(
            self._services.broker.access, AuthPeer(self.connection.host, self.connection.tls)
        )
        connecting = Connecting(self._services, self.connection, self.wire, packet, authentication)
        self.keep_alive = connecting.keep_alive
        self._hold_for(self._prove(connecting, authentication.begin(packet)))

    async def _prove(self, connecting: Connecting, step: Awaitable[None]) -> None:
        """Take a step of an authentication. If it is over connect, else send its next message."""
        authentication = connecting.authentication
        try:
            await step
            if authentication.method:
                self._authentication = authentication
            if not authentication.is_over:
                self._connecting = connecting
                self._send_auth(authentication, ReasonCode.CONTINUE_AUTHENTICATION)
                return
        except (PacketError, AuthenticationFailed) as error:
            self._refuse(connecting, error.reason, str(error))
            return
        self._connecting = None
        await self._connect(connecting)

    def _exchange(self, connecting: Connecting, event: Event) -> None:
        """A packet that comes before the authentication is over [MQTT-3.1.2-30]."""
        if isinstance(event, Disconnect):
            self._connecting, self._ended = None, True
            self.connection.end("the client leaves")
            return
        if isinstance(event, Auth):
            self._hold_for(self._prove(connecting, connecting.authentication.proceed(event)))
        else:
            self._refuse(connecting, ReasonCode.PROTOCOL_ERROR, "a packet before CONNACK")

    def _refuse(self, connecting: Connecting, reason: ReasonCode, text: str) -> None:
        self._connecting, self._ended = None, True
        self._release_connect()
        connecting.refuse(reason, text)

    def _release_connect(self) -> None:
        self.connection.has_answered(self._reserved)
        self._reserved = 0

    def _send_auth(self, authentication: Authentication, reason: ReasonCode) -> None:
        self.wire.pack_auth(authentication.answer(reason))
        self.connection.touch()

    async def _connect(self, connecting: Connecting) -> None:
        try:
            if await connecting.run(self._enter) is None:
                self._ended = True
        finally:
            self._release_connect()

    async def _authenticate_again(self, client: ConnectedClient, packet: Auth) -> None:
        """AUTH of a connected client (4.12.1)."""
        authentication = self._authentication
        if authentication is None:
            raise ProtocolViolation("CONNECT named no authentication method")  # [MQTT-4.12.0-7]
        try:
            await authentication.proceed(packet)
        except AuthenticationFailed as error:
            raise PacketError(error.reason, str(error)) from None  # [MQTT-4.12.1-2]
        if authentication.is_over:
            if authentication.identity.name != client.identity.name:
                # The session, its will and its messages are those of who began it; Pulsar and Kafka
                # refuse the same (`ServerCnx.java` 4.2, KIP-368).
                raise PacketError(ReasonCode.NOT_AUTHORIZED, "another name than before")
            client.identity = authentication.identity
            client.rights_changed()
            self._send_auth(authentication, ReasonCode.SUCCESS)
        else:
            self._send_auth(authentication, ReasonCode.CONTINUE_AUTHENTICATION)

    def _enter(self, client: ConnectedClient) -> bool:
        """The client may connect; returns whether its connection is still there."""
        if self._ended:
            return False
        self.client = client
        if self._services.broker.access.asks:
            self._services.broker.access.live.add(client)
        if self.keep_alive:
            self._services.keep_alive.enter(self)
        else:
            self.connection.probe()  # a device without power says nothing for ever
        return True

    def _disconnect(self, client: ConnectedClient, packet: Disconnect) -> None:
        """The client leaves; its will is published unless the reason is 0 [MQTT-3.14.4-3]."""
        expiry = packet.properties.get(Property.SESSION_EXPIRY_INTERVAL)
        if expiry is not None:
            if expiry and not client.expiry_seconds:
                text = "DISCONNECT extends a session that ends with its connection"
                raise PacketError(ReasonCode.PROTOCOL_ERROR, text)
            limit = self._services.options.session_expiry_seconds_max
            client.expiry_seconds = min(expiry, limit) if limit else expiry
            client.lasts = client.expiry_seconds > 0
        if packet.reason is ReasonCode.SUCCESS:
            client.will = None
        self._ended = True
        self._drop_waiting()
        self.connection.end("the client leaves")

    # -- PUBLISH ------------------------------------------------------------------------------

    def _publish(self, event: Publishes, at: int) -> None:
        self.connection.will_write()
        publisher = self._client().publisher
        at = publisher.publish(event, at)
        if at < len(event.packets):
            self._hold_for(self._open_and_publish(publisher, event, at))

    async def _open_and_publish(self, publisher: Publisher, event: Publishes, at: int) -> None:
        """Publish packets from `at` on, each of which may need a log that is not open."""
        packets = event.packets
        while at < len(packets) and not self._ended:
            try:
                await publisher.open_for(packets[at])
            except BrokerError as error:
                publisher.refuse(packets[at], error)
                at += 1
            if at < len(packets) and not self._ended:
                at = publisher.publish(event, at)
            await trio.lowlevel.checkpoint()  # a refusal may need no wait

    # -- acknowledgements of deliveries -------------------------------------------------------

    def _acknowledge(
        self,
        client: ConnectedClient,
        kind: PacketType,
        ids: Sequence[int],
        reason: ReasonCode = ReasonCode.SUCCESS,
    ) -> None:
        in_flight = client.subscriber.ids
        if kind is PUBACK:
            self._end(client, in_flight.all_acknowledged(ids))
        elif kind is PUBREL:
            client.publisher.released(ids)
        elif kind is PUBCOMP:
            self._end(client, in_flight.all_completed(ids))
        elif reason.fails:
            self._end(client, in_flight.all_refused(ids))
        else:
            self._receive(client, ids)

    @staticmethod
    def _end(client: ConnectedClient, ended: Ended[Sent]) -> None:
        """These messages are acknowledged. Those of a group are sent one by one."""
        for one in ended.alone:
            if one.group is not None:
                one.group.acknowledged(one)
        if ended.total:
            client.changed()
            client.subscriber.has_room()

    @staticmethod
    def _receive(client: ConnectedClient, ids: Sequence[int]) -> None:
        """Answer PUBREC with PUBREL, once it is stored that PUBLISH is not sent again."""
        subscriber = client.subscriber
        known = [number for number in ids if subscriber.ids.received(number) is not None]
        if known:
            client.when_saved(partial(subscriber.release, known))
        if len(known) == len(ids):
            return
        reason = ReasonCode.SUCCESS
        if client.version == Version.V5:
            reason = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
        for number in set(ids).difference(known):
            client.send(encode.acknowledgement(client.version, PacketType.PUBREL, number, reason))

    # -- life ---------------------------------------------------------------------------------

    @property
    def silence_seconds_allowed(self) -> float:
        """Without limit for the link, once a client is connected: `keep_alive.py` has its own
        interval.
        """
        return 0.0 if self.client is None else math.inf

    def quiet(self) -> None:
        """Clients ping, not servers."""

    def relieved(self) -> None:
        """The client has received earlier packets: there is room for more."""
        if self.client is not None:
            self.client.subscriber.has_room()

    def silent(self) -> None:
        """The client has sent nothing for one and a half times its interval [MQTT-3.1.2-22]; unless
        this server has not read what it sent.
        """
        if self.connection.paused:
            self.heard = self._now()
            self._services.keep_alive.enter(self)
            return
        self._fail(PacketError(ReasonCode.KEEP_ALIVE_TIMEOUT, "the client is silent"))

    def closed(self, reason: str) -> None:
        """The connection is closed."""
        del reason
        self._ended = True
        self.wire.close()
        self._drop_waiting()
        self._connecting = None
        self._release_connect()
        self._services.keep_alive.leave(self)
        client = self.client
        if client is None or client.gone:
            return
        client.leave()
        sessions = self._services.sessions
        if client.lasts or client.will is not None or client.client_id in sessions.records:
            self._services.departures.add(client.client_id, client)
        else:
            sessions.leave_at_once(client.client_id, client)
            client.release()


def _connect_weight(packet: Connect) -> int:
    """The memory of a CONNECT, whose will may be large."""
    will = 0 if packet.will is None else len(packet.will.payload)
    return 2 * PACKET_BYTES + will + len(packet.password or b"")


def _weight(event: Event) -> int:
    """The memory of a packet that waits, or of a run."""
    if isinstance(event, Publishes):
        return PACKET_BYTES + len(event.data)
    if isinstance(event, Acknowledgements):
        return PACKET_BYTES + 2 * len(event.ids)
    return PACKET_BYTES
