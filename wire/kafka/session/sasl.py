"""SaslHandshake and SaslAuthenticate: authentication by a mechanism of core.

SaslHandshake names the mechanism (KIP-43); SaslAuthenticate carries its tokens, and returns an
error code with a message (KIP-152). So far core has no mechanism: a handshake gets
UNSUPPORTED_SASL_MECHANISM and an empty list of mechanisms. Clients need not authenticate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import AuthPeer
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
    from magnetar.core.security.access import Access
    from magnetar.wire.kafka.session.context import Handler, RequestContext


class SaslHandlers:
    """SaslHandshake and SaslAuthenticate."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.SASL_HANDSHAKE: self.on_sasl_handshake,
            ApiKey.SASL_AUTHENTICATE: self.on_sasl_authenticate,
        }

    async def on_sasl_handshake(
        self, context: RequestContext, request: SaslHandshakeRequest
    ) -> SaslHandshakeResponse:
        mechanisms = self._access.mechanisms
        code = UNSUPPORTED_SASL_MECHANISM
        if request.mechanism in mechanisms:
            peer = AuthPeer(context.caller.host)
            code, context.caller.proof = NONE, self._access.begin(request.mechanism, peer)
        return SaslHandshakeResponse(error_code=code, mechanisms=sorted(mechanisms))

    async def on_sasl_authenticate(
        self, context: RequestContext, request: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        response = SaslAuthenticateResponse(error_code=NONE, error_message=None, auth_bytes=b"")
        proof = context.caller.proof
        if proof is None:
            response.error_code = ILLEGAL_SASL_STATE
            response.error_message = "SaslAuthenticate request received before a SaslHandshake"
            return response
        try:
            response.auth_bytes = await proof.respond(request.auth_bytes)
        except Unauthenticated as error:
            context.caller.proof = None
            response.error_code, response.error_message = SASL_AUTHENTICATION_FAILED, str(error)
            return response
        if proof.identity is not None:
            context.caller.identity, context.caller.proof = proof.identity, None
        return response
