"""The authentication of one connection: by user name and password, or by an exchange (4.12 of 5.0).

    nobody       CONNECT names no user and no method: the client is `Access.nobody`, or refused
    certificate  the same, of a client that has shown one: it proves who the client is. Mosquitto
                 takes that from a certificate only (`use_identity_as_username`); here what CONNECT
                 says decides, as with SASL over TLS in Kafka
    password     the mechanism PLAIN gets user name and password (RFC 4616); a server without it
                 takes any of them
    exchanging   CONNECT names a method, which is a mechanism of core: AUTH carries its messages
    over         it has succeeded; AUTH may begin another one with the same method

The last message of the server is part of CONNACK, or of the AUTH that ends a re-authentication.
While a client exchanges before CONNACK, it may send nothing else but DISCONNECT [MQTT-3.1.2-30].

A failure is answered late (`core/security/failures.py`): these methods wait, and the session holds
later packets back meanwhile.

Invariants: at most one exchange is going on; `identity` changes only when one succeeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import PLAIN, AuthPeer
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.packets import Auth, Connect
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.delivery.subscriber import NO_LIMIT
from magnetar.wire.mqtt.errors import PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from magnetar.core.security.access import Access
    from magnetar.core.security.conversation import Conversation


class AuthenticationFailed(Exception):
    """The client is not who it says, or proves it in an unknown way."""

    def __init__(self, reason: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Authentication:
    """See the module's docstring."""

    __slots__ = (
        "_access",
        "_answer",
        "_conversation",
        "_packet_bytes_max",
        "_peer",
        "identity",
        "method",
    )

    def __init__(self, access: Access, peer: AuthPeer) -> None:
        self._access = access
        self._peer = peer
        self._conversation: Conversation | None = None
        self._answer = b""
        self._packet_bytes_max = NO_LIMIT
        self.method = ""
        """The method of CONNECT; empty for none."""
        self.identity: Identity = ANYBODY

    @property
    def is_over(self) -> bool:
        return self._conversation is None

    @property
    def properties(self) -> Mapping[Property, Any]:
        """Method and data for AUTH or CONNACK [MQTT-4.12.0-5]; none without a method
        [MQTT-4.12.0-6].
        """
        found: dict[Property, Any] = {}
        if self.method:
            found[Property.AUTHENTICATION_METHOD] = self.method
            if self._answer:
                found[Property.AUTHENTICATION_DATA] = self._answer
        return found

    def answer(self, reason: ReasonCode) -> bytes:
        """Encode AUTH; raises if it is too large for the client [MQTT-3.1.2-24]."""
        packet = encode.auth(reason, self.properties)
        if len(packet) > self._packet_bytes_max:
            raise PacketError(ReasonCode.PACKET_TOO_LARGE, "AUTH is larger than the client accepts")
        return packet

    # -- packets ------------------------------------------------------------------------------

    async def begin(self, packet: Connect) -> None:
        """Process CONNECT; raises `AuthenticationFailed`. If it is not over, AUTH follows."""
        self.method = packet.properties.get(Property.AUTHENTICATION_METHOD, "")
        self._packet_bytes_max = packet.properties.get(Property.MAXIMUM_PACKET_SIZE, NO_LIMIT)
        if Property.AUTHENTICATION_METHOD in packet.properties:
            await self._converse(packet.properties)
        elif packet.username is not None and PLAIN in self._access.mechanisms:
            await self._prove(packet.username, packet.password or b"")
        elif (conversation := self._access.by_certificate(self._peer)) is not None:
            await self._prove_silently(conversation)
        else:
            self._be_nobody()

    async def _prove_silently(self, conversation: Conversation) -> None:
        try:
            await conversation.respond(b"")
        except Unauthenticated as error:
            raise AuthenticationFailed(ReasonCode.NOT_AUTHORIZED, str(error)) from None
        assert conversation.identity is not None, "a certificate is shown before"
        self.identity = conversation.identity

    def _be_nobody(self) -> None:
        try:
            self.identity = self._access.anonymous()
        except Unauthenticated as error:
            raise AuthenticationFailed(ReasonCode.NOT_AUTHORIZED, str(error)) from None

    async def _prove(self, username: str, password: bytes) -> None:
        conversation = self._access.begin(PLAIN, self._peer)
        try:
            await conversation.respond(b"\0%s\0%s" % (username.encode(), password))
        except Unauthenticated as error:
            reason = ReasonCode.BAD_USER_NAME_OR_PASSWORD
            raise AuthenticationFailed(reason, str(error)) from None
        assert conversation.identity is not None, "PLAIN is one message"
        self.identity = conversation.identity

    async def _converse(self, properties: Mapping[Property, Any]) -> None:
        if self.method not in self._access.mechanisms:
            reason = ReasonCode.BAD_AUTHENTICATION_METHOD
            raise AuthenticationFailed(reason, "there is no such method")
        self._conversation = self._access.begin(self.method, self._peer)
        await self._respond(properties)

    async def proceed(self, packet: Auth) -> None:
        """Process AUTH: it continues an exchange, or begins another one (4.12.1)."""
        if packet.properties[Property.AUTHENTICATION_METHOD] != self.method:
            raise ProtocolViolation("AUTH names another method than CONNECT")  # [MQTT-4.12.1-1]
        again = packet.reason is ReasonCode.REAUTHENTICATE
        if again is not self.is_over:
            raise ProtocolViolation("AUTH is not for the exchange that is going on")
        if again:
            await self._converse(packet.properties)
        else:
            await self._respond(packet.properties)

    async def _respond(self, properties: Mapping[Property, Any]) -> None:
        assert self._conversation is not None
        try:
            said = properties.get(Property.AUTHENTICATION_DATA, b"")
            self._answer = await self._conversation.respond(said)
        except Unauthenticated as error:
            self._conversation = None
            raise AuthenticationFailed(ReasonCode.NOT_AUTHORIZED, str(error)) from None
        found = self._conversation.identity
        if found is not None:
            self.identity = found
            self._conversation = None
