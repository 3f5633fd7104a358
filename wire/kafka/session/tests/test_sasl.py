"""Authentication: before, once and again; and what ends a connection."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.core.security.access import Access
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.line import Line
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.basics import ApiVersionsRequest, MetadataRequest
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from magnetar.wire.kafka.wire import HELLO_BYTES_MAX

PLAIN = SaslHandshakeRequest(mechanism="PLAIN")
ALI = SaslAuthenticateRequest(auth_bytes=b"\0ali\0secret")


def stage_with(access: Access) -> AbstractAsyncContextManager[Stage]:
    @asynccontextmanager
    async def made() -> AsyncIterator[Stage]:
        stores = Stores()
        async with running(stores, access=access) as broker:
            yield Stage(stores, broker)

    return made()


@pytest.fixture
async def asking() -> AsyncIterator[Stage]:
    """A server that wants to know who its clients are."""
    async with stage_with(guarded(["ali"])) as stage:
        yield stage


async def test_there_is_none_and_clients_are_told(stage: Stage) -> None:
    client = await stage.client()
    received = await client.exchange(PLAIN)
    assert (received.error_code, received.mechanisms) == (errors.UNSUPPORTED_SASL_MECHANISM, [])
    received = await client.exchange(ALI)
    assert received.error_code == errors.ILLEGAL_SASL_STATE
    assert client.line.ending is None


async def test_a_client_says_who_it_is(asking: Stage) -> None:
    client = Client(asking.front)
    assert (await client.exchange(ApiVersionsRequest(), 2)).error_code == 0
    received = await client.exchange(PLAIN)
    assert (received.error_code, received.mechanisms) == (errors.NONE, ["PLAIN"])
    received = await client.exchange(ALI)
    assert (received.error_code, received.session_lifetime_ms) == (errors.NONE, 0)
    assert client.session.caller.identity.name == "ali"
    assert (await client.exchange(MetadataRequest(topics=[]))).brokers


async def test_other_requests_wait_for_nobody(asking: Stage) -> None:
    client = Client(asking.front)
    client.ask(MetadataRequest(topics=None))
    assert client.line.ending == "API 3 before authentication"
    assert client.receive() == []


async def test_another_mechanism(asking: Stage) -> None:
    client = Client(asking.front)
    received = await client.exchange(SaslHandshakeRequest(mechanism="basic"))
    assert (received.error_code, received.mechanisms) == (33, ["PLAIN"])
    assert client.line.ending


async def test_a_proof_that_fails_is_answered_and_ends_the_connection(asking: Stage) -> None:
    client = Client(asking.front)
    await client.exchange(PLAIN)
    received = await client.exchange(SaslAuthenticateRequest(auth_bytes=b"\0ali\0guess"))
    assert received.error_code == errors.SASL_AUTHENTICATION_FAILED
    assert received.error_message == "the name or the secret is wrong"
    assert client.line.ending == "authentication failed"
    assert not client.session.caller.admitted


async def test_tokens_without_headers(asking: Stage) -> None:
    client = Client(asking.front)
    assert (await client.exchange(PLAIN, 0)).error_code == 0
    token = ALI.auth_bytes
    client.wire.feed(struct.pack(">i", len(token)) + token)
    for event in client.wire.take_events():
        client.session.handle(event)
    await settled()
    assert b"".join(client.wire.take_outgoing()) == b"\0\0\0\0"
    assert client.session.caller.identity.name == "ali"
    assert (await client.exchange(MetadataRequest(topics=[]))).brokers


async def test_a_token_without_header_that_fails(asking: Stage) -> None:
    client = Client(asking.front)
    await client.exchange(PLAIN, 0)
    client.wire.feed(struct.pack(">i", 4) + b"\0a\0b")
    for event in client.wire.take_events():
        client.session.handle(event)
    await settled()
    assert b"".join(client.wire.take_outgoing()) == b""
    assert client.line.ending == "authentication failed"


async def test_frames_are_small_before_authentication(asking: Stage) -> None:
    client = Client(asking.front)
    with pytest.raises(WireError):
        client.wire.feed(struct.pack(">ihh", HELLO_BYTES_MAX + 1, 36, 2))
    client = Client(asking.front)
    assert client.wire.feed(struct.pack(">ihh", HELLO_BYTES_MAX, 36, 2)) == 0
    client = Client(asking.front)
    await client.exchange(PLAIN)
    await client.exchange(ALI)
    assert client.wire.feed(struct.pack(">ihh", 1 << 20, 36, 2)) == 0


async def test_a_connection_is_introduced_by_authentication(asking: Stage) -> None:
    """Until then it has a span of silence to live (`core/link/keep_alive.py`), whatever it asks."""
    client = Client(asking.front)
    line = client.line
    for request in (ApiVersionsRequest(), PLAIN):
        line.introduced = True  # the link says so before each request
        await client.exchange(request)
        assert not line.introduced
    await client.exchange(ALI)
    assert line.introduced
    await client.exchange(ApiVersionsRequest())
    assert line.introduced


class FullLine(Line):
    """A connection of a server without memory for more requests of strangers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.answered: list[int] = []
        self.room = True

    def has_room_to_wait(self, size: int) -> bool:
        self.asked.append(size)
        return self.room

    def has_answered(self, size: int) -> None:
        self.answered.append(size)


async def test_requests_of_strangers_count_as_memory(asking: Stage) -> None:
    client = Client(asking.front)
    line = client.line = client.session.connection = client.session.caller.connection = FullLine()  # type: ignore[assignment]
    await client.exchange(ApiVersionsRequest())
    assert len(line.asked) == 1
    assert line.asked == line.answered, "and no longer once they are answered"
    line.room = False
    client.ask(PLAIN)
    assert line.ending == "a request of 18 bytes, for which there is no memory"
    assert client.receive() == []


async def test_once_more_as_the_same_user_only(asking: Stage) -> None:
    client = Client(asking.front)
    for _ in range(2):
        await client.exchange(PLAIN)
        assert (await client.exchange(ALI)).error_code == 0
    await client.exchange(PLAIN)
    received = await client.exchange(SaslAuthenticateRequest(auth_bytes=b"\0eve\0secret"))
    assert received.error_code == errors.SASL_AUTHENTICATION_FAILED
    assert "Cannot change principals" in received.error_message
    assert client.line.ending


async def test_a_proof_expires() -> None:
    async with stage_with(guarded(["ali"], expires_at=0.0)) as stage:
        expires_at = stage.broker.clock.wall_ms() / 1000 + 60
        stage.broker.access.mechanisms = guarded(expires_at=expires_at).mechanisms
        client = Client(stage.front)
        await client.exchange(PLAIN)
        assert (await client.exchange(ALI, 1)).session_lifetime_ms == 60_000
        client.session.caller.expired()
        await client.exchange(PLAIN)
        assert (await client.exchange(ALI)).error_code == 0
        assert (await client.exchange(MetadataRequest(topics=[]))).brokers
        client.session.caller.expired()
        client.ask(ApiVersionsRequest())
        assert client.line.ending == "its authentication has expired"
