"""Proofs of who a client is: none so far, and one of ours to see that the door is there."""

from __future__ import annotations

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest


class Password:
    """Two steps, and a word."""

    def __init__(self) -> None:
        self.who = ""
        self._asked = False

    def respond(self, said: bytes) -> bytes:
        if not self._asked:
            self._asked = True
            return b"word?"
        if said != b"sesame":
            raise Unauthenticated("that is not the word")
        self.who = "ali"
        return b"welcome"


async def test_there_is_none_and_clients_are_told(stage: Stage) -> None:
    client = await stage.client()
    received = await client.exchange(SaslHandshakeRequest(mechanism="PLAIN"))
    assert (received.error_code, received.mechanisms) == (errors.UNSUPPORTED_SASL_MECHANISM, [])
    received = await client.exchange(SaslAuthenticateRequest(auth_bytes=b"\0a\0b"))
    assert received.error_code == errors.ILLEGAL_SASL_STATE


async def test_a_mechanism_is_carried_to_its_end(stage: Stage) -> None:
    stage.broker.access.mechanisms["WORD"] = Password
    client = await stage.client()
    assert (await client.exchange(SaslHandshakeRequest(mechanism="WORD"))).error_code == 0
    assert (await client.exchange(SaslAuthenticateRequest(auth_bytes=b""))).auth_bytes == b"word?"
    assert client.session.caller.principal == ""
    received = await client.exchange(SaslAuthenticateRequest(auth_bytes=b"sesame"))
    assert (received.error_code, received.auth_bytes) == (0, b"welcome")
    assert client.session.caller.principal == "ali"


async def test_a_proof_that_fails(stage: Stage) -> None:
    stage.broker.access.mechanisms["WORD"] = Password
    client = await stage.client()
    await client.exchange(SaslHandshakeRequest(mechanism="WORD"))
    await client.exchange(SaslAuthenticateRequest(auth_bytes=b""))
    received = await client.exchange(SaslAuthenticateRequest(auth_bytes=b"open"))
    assert received.error_code == errors.SASL_AUTHENTICATION_FAILED
    assert received.error_message == "that is not the word"
    assert client.session.caller.principal == ""
    again = await client.exchange(SaslAuthenticateRequest(auth_bytes=b"sesame"))
    assert again.error_code == errors.ILLEGAL_SASL_STATE
