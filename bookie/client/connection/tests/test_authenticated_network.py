"""Connections with credentials, to our bookies and to one that the test plays."""

from contextlib import asynccontextmanager

import pytest
import trio

from magnetar.bookie.client.connection import authenticated_network
from magnetar.bookie.client.connection.authenticated_network import AuthenticatedNetwork
from magnetar.bookie.client.connection.question import ask_once
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.requests.authentication import BookieAccess, PeerGrant
from magnetar.bookie.requests.tests.peers import serving
from magnetar.bookie.rpc import version3
from magnetar.bookie.rpc.credentials import (
    DIGEST_REALM,
    DIGEST_URI,
    SASL,
    TOKEN,
    PasswordCredentials,
    TokenCredentials,
)
from magnetar.bookie.rpc.digest_md5 import DigestServer, secret_of
from magnetar.bookie.rpc.messages import (
    Authenticate,
    BookieInfo,
    GetBookieInfo,
    Status,
    StatusOnly,
)
from magnetar.core.kernel.errors import StorageFailed, Unauthenticated
from magnetar.core.testing.memory_disk import MemoryDisk

QUESTION = GetBookieInfo(True, True)
PEOPLE = {"ali": secret_of("ali", DIGEST_REALM, "sesame")}


class Word:
    def __init__(self):
        self.grant = None

    def respond(self, said):
        if said != b"a token":
            raise Unauthenticated("another word")
        self.grant = PeerGrant("client")
        return b""


class Digest:
    def __init__(self):
        self._server = DigestServer(PEOPLE, DIGEST_REALM, DIGEST_URI, "nonce")

    @property
    def grant(self):
        return PeerGrant(self._server.name) if self._server.name else None

    def respond(self, said):
        return self._server.respond(said)


@asynccontextmanager
async def asking_bookie():
    async with serving(MemoryDisk(), access=BookieAccess({TOKEN: Word, SASL: Digest})) as served:
        yield served


async def ask(served, credentials):
    network = AuthenticatedNetwork(SystemNetwork(), credentials)
    return await ask_once(network, "127.0.0.1", served._port, QUESTION)


def password(word="sesame", name="ali"):
    return PasswordCredentials(lambda: "cnonce", name, word)


@pytest.mark.parametrize("credentials", [TokenCredentials(TOKEN, b"a token"), password()])
async def test_who_shows_what_is_right_is_answered(credentials):
    async with asking_bookie() as served:
        assert isinstance(await ask(served, credentials), BookieInfo)
        assert isinstance(await ask(served, credentials), BookieInfo), "each connection"


@pytest.mark.parametrize(
    "credentials",
    [
        TokenCredentials(TOKEN, b"another"),
        TokenCredentials("unknown", b"a token"),
        password("guess"),
        password(name="nobody"),
    ],
)
async def test_who_shows_what_is_wrong_gets_no_connection(credentials):
    async with asking_bookie() as served:
        with pytest.raises(StorageFailed, match="refuses our credentials"):
            await ask(served, credentials)
        with trio.fail_after(20):
            while served.link._connections:
                await trio.lowlevel.checkpoint()


async def test_a_bookie_that_asks_nobody_is_not_told_twice():
    async with serving(MemoryDisk()) as served:
        for credentials in (TokenCredentials(TOKEN, b"a token"), password()):
            assert isinstance(await ask(served, credentials), BookieInfo)


async def test_a_bookie_that_does_not_know_the_password_itself():
    async with played(Authenticate(SASL, b'nonce="x",realm="r"'), Authenticate(SASL, b"rspauth=1")):
        with pytest.raises(StorageFailed, match="is not trusted: it does not know the password"):
            await ask(played.served, password())


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([StatusOnly(Status.UNAUTHORIZED)], "refuses our credentials"),
        ([Authenticate("other", b"")], "speaks of other, not token"),
        ([None], "has closed the connection"),
    ],
)
async def test_bookies_that_answer_something_else(answers, why):
    async with played(*answers):
        with pytest.raises(StorageFailed, match=why):
            await ask(played.served, TokenCredentials(TOKEN, b"a token"))


async def test_an_exchange_without_an_end(monkeypatch):
    monkeypatch.setattr(authenticated_network, "STEPS_MAX", 3)

    class Endless:
        plugin = TOKEN

        def begin(self):
            return self

        def respond(self, said):
            return said + b"x"

    async with played(*[Authenticate(TOKEN, b"more")] * 3):
        with pytest.raises(StorageFailed, match="never ends the exchange"):
            await ask(played.served, Endless())


@asynccontextmanager
async def played(*answers):
    """A bookie that gives these answers, the last by closing the connection if it is None."""
    left = list(answers)

    async def serve(stream):
        buffer = b""
        while left:
            while len(buffer) < 4 or len(buffer) < 4 + int.from_bytes(buffer[:4]):
                data = await stream.receive_some()
                if not data:
                    return
                buffer += data
            end = 4 + int.from_bytes(buffer[:4])
            header, _ = version3.parse_request(buffer[4:end])
            buffer = buffer[end:]
            answer = left.pop(0)
            if answer is None:
                break
            body = version3.pack_response(header, answer)
            await stream.send_all(len(body).to_bytes(4) + body)
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)

        class Where:
            _port = listeners[0].socket.getsockname()[1]

        played.served = Where
        with trio.fail_after(20):
            yield
        nursery.cancel_scope.cancel()
