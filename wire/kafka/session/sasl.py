"""SaslHandshake and SaslAuthenticate: authentication by a mechanism of core.

SaslHandshake names the mechanism (KIP-43); SaslAuthenticate carries its tokens, and returns an
error code with a message (KIP-152). After SaslHandshake 0 the tokens come without a header
(`KafkaWire.reads_tokens`). A connection may authenticate again, by the same mechanism and as the
same user (KIP-368): clients do so before `session_lifetime_ms` is over.

A client with a certificate that sends another request first, without SASL, is whom the certificate
names: with SASL, SASL decides (`DefaultKafkaPrincipalBuilder` of 4.3 by listener, here by client).

Invariants: a connection has one identity after its first authentication; a failure is answered, and
then the connection ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import CERTIFICATE, SASL, Conversation
from magnetar.core.security.identity import Identity
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    ILLEGAL_SASL_STATE,
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
)
from magnetar.wire.kafka.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.core.security.access import Access
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

HELLO: Final = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE))
"""Requests that need no right. Kafka accepts no others before authentication
(`SaslServerAuthenticator.handleKafkaRequest` of 4.3).
"""
PROVES: Final = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
"""All that a connection may send after its proof has expired."""


class SaslHandlers:
    """SaslHandshake and SaslAuthenticate."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.SASL_HANDSHAKE: self.on_sasl_handshake,
            ApiKey.SASL_AUTHENTICATE: self.on_sasl_authenticate,
        }

    async def on_sasl_handshake(
        self, context: RequestContext, request: SaslHandshakeRequest
    ) -> SaslHandshakeResponse:
        caller = context.caller
        caller.proof = None
        if caller.identity.method == CERTIFICATE:  # as on Kafka's listener for SSL without SASL
            return SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE, mechanisms=[])
        offered: list[str] = [name for name in SASL if name in self._access.mechanisms]
        if caller.identity.method:
            offered = [name for name in offered if name == caller.mechanism]
        if request.mechanism not in offered:
            return SaslHandshakeResponse(error_code=UNSUPPORTED_SASL_MECHANISM, mechanisms=offered)
        caller.proof = self._access.begin(request.mechanism, caller.peer)
        caller.mechanism = request.mechanism
        caller.says_tokens = context.version == 0
        return SaslHandshakeResponse(error_code=NONE, mechanisms=offered)

    async def on_sasl_authenticate(
        self, context: RequestContext, request: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        caller = context.caller
        response = SaslAuthenticateResponse(error_code=NONE, error_message=None, auth_bytes=b"")
        if caller.proof is None:
            response.error_code = ILLEGAL_SASL_STATE
            response.error_message = "SaslAuthenticate request received before a SaslHandshake"
            return response
        proof = caller.proof
        try:
            response.auth_bytes = await proof.respond(request.auth_bytes)
            proven = _proven(caller, proof)
        except Unauthenticated as error:
            caller.proof, caller.says_tokens = None, False
            response.error_code, response.error_message = SASL_AUTHENTICATION_FAILED, str(error)
            return response
        if proven is not None and not caller.gone:
            admit(caller, proven)
            response.session_lifetime_ms = self._lifetime_ms(proven)
        return response

    def _lifetime_ms(self, identity: Identity) -> int:
        """How long the proof is valid; 0 for ever."""
        if identity.expires_at is None:
            return 0
        return max(int(identity.expires_at * 1000) - self._clock.wall_ms(), 1)


async def prove_by_certificate(caller: Caller, proof: Conversation) -> str:
    """Admit a client with a certificate; returns why it is refused, or nothing."""
    try:
        await proof.respond(b"")
    except Unauthenticated as error:
        return str(error)
    if proof.identity is not None and not caller.gone:
        admit(caller, proof.identity)
    return ""


def admit(caller: Caller, identity: Identity) -> None:
    """The client is known."""
    caller.identity, caller.proof = identity, None
    caller.admitted, caller.lapsed, caller.says_tokens = True, False, False
    caller.access.live.add(caller)


def _proven(caller: Caller, proof: Conversation) -> Identity | None:
    """The identity if the exchange has ended; it may not be another one than before."""
    found, before = proof.identity, caller.identity
    if found is not None and before.method and found.name != before.name:
        raise Unauthenticated(
            f"Cannot change principals during re-authentication from {before.name} to {found.name}"
        )
    return found


def ends(response: object, *, admitted: bool) -> str:
    """Why the connection ends after this answer; empty if it goes on. One that may send requests
    without authentication goes on after a handshake that found nothing.
    """
    if isinstance(response, SaslAuthenticateResponse) and response.error_code != NONE:
        if response.error_code == SASL_AUTHENTICATION_FAILED or not admitted:
            return "authentication failed"
    elif isinstance(response, SaslHandshakeResponse) and response.error_code != NONE:
        return "" if admitted else "there is no such mechanism of authentication"
    return ""
