"""SaslHandshake, SaslAuthenticate: a client proves who it is, by a mechanism of core.

Where there is no mechanism (so far there is none), a client hears so: it has asked for more than
this server can do, and is to know it. Nobody has to prove anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.errors import Unauthenticated
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
    from magnetar.wire.kafka.session.session import KafkaSession
    from magnetar.wire.kafka.wire import KafkaRequest


async def on_sasl_handshake(session: KafkaSession, asked: KafkaRequest) -> SaslHandshakeResponse:
    request = asked.request
    assert isinstance(request, SaslHandshakeRequest)
    mechanisms = session.broker.access.mechanisms
    begin = mechanisms.get(request.mechanism)
    if begin is None:
        code = UNSUPPORTED_SASL_MECHANISM
    else:
        code, session.proof = NONE, begin()
    return SaslHandshakeResponse(error_code=code, mechanisms=sorted(mechanisms))


async def on_sasl_authenticate(
    session: KafkaSession, asked: KafkaRequest
) -> SaslAuthenticateResponse:
    request = asked.request
    assert isinstance(request, SaslAuthenticateRequest)
    told = SaslAuthenticateResponse(error_code=NONE, error_message=None, auth_bytes=b"")
    proof = session.proof
    if proof is None:
        told.error_code = ILLEGAL_SASL_STATE
        told.error_message = "SaslAuthenticate request received before a SaslHandshake"
        return told
    try:
        told.auth_bytes = proof.hear(request.auth_bytes)
    except Unauthenticated as error:
        session.proof = None
        told.error_code, told.error_message = SASL_AUTHENTICATION_FAILED, str(error)
        return told
    if proof.who:
        session.who, session.proof = proof.who, None
    return told


HANDLERS: Final[Mapping[int, Any]] = {
    ApiKey.SASL_HANDSHAKE: on_sasl_handshake,
    ApiKey.SASL_AUTHENTICATE: on_sasl_authenticate,
}
