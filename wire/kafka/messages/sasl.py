"""The messages of SaslHandshake and SaslAuthenticate."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    Bytes,
    Int16,
    Int64,
    Request,
    Response,
    String,
    since,
)


class SaslHandshakeRequest(Request):
    """Selects a SASL mechanism (KIP-43)."""

    KEY = ApiKey.SASL_HANDSHAKE
    VERSIONS = (0, 1)

    mechanism: String


class SaslHandshakeResponse(Response):
    """Whether the mechanism is enabled, and which ones are."""

    error_code: Int16
    mechanisms: list[String]


class SaslAuthenticateRequest(Request):
    """A token of the mechanism (KIP-152)."""

    KEY = ApiKey.SASL_AUTHENTICATE
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    auth_bytes: Bytes


class SaslAuthenticateResponse(Response):
    """The next token; at the end, the lifetime of the session (KIP-368)."""

    error_code: Int16
    error_message: String | None
    auth_bytes: Bytes
    session_lifetime_ms: Annotated[Int64, since(1)] = 0
