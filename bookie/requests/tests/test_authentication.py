"""Clients that have to prove who they are, by a mechanism of two steps that these tests have."""

import pytest
import trio

from magnetar.bookie.requests.authentication import PeerMechanism
from magnetar.bookie.requests.tests.peers import KEY, add, serving
from magnetar.bookie.rpc.messages import (
    Added,
    Authenticate,
    BatchRead,
    ForceLedger,
    GetBookieInfo,
    Read,
    ReadEntry,
    ReadLac,
    StartTls,
    Status,
    StatusOnly,
    TlsStarted,
    WriteLac,
)
from magnetar.core.kernel.errors import Unauthenticated

PLUGIN = "org.example.Passwords"


class Password:
    """A question, and its answer."""

    def __init__(self):
        self.who = ""

    def respond(self, said):
        if said == b"":
            return b"the word?"
        if said != b"secret":
            raise Unauthenticated("a wrong word")
        self.who = "client"
        return b"welcome"


@pytest.fixture
async def guarded(disk):
    async with serving(disk, mechanism=PeerMechanism(PLUGIN, Password)) as one:
        yield one


async def authenticate(peer):
    assert await peer.ask(Authenticate(PLUGIN, b"")) == Authenticate(PLUGIN, b"the word?")
    assert await peer.ask(Authenticate(PLUGIN, b"secret")) == Authenticate(PLUGIN, b"welcome")


@pytest.mark.parametrize("version", [2, 3])
async def test_who_has_proved_it_may_do_everything(guarded, version):
    async with guarded.dial(version) as peer:
        await authenticate(peer)
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        assert (await peer.ask(Read(1, 0))).status is Status.OK
        again = await peer.ask(Authenticate("any", b""))
        assert again == Authenticate("AuthDisabledPlugin", b"")
    async with guarded.dial(version) as other:
        assert (await other.ask(add(1, 1))).status is Status.UNAUTHORIZED, "each connection"


async def test_version_2_before_that(guarded):
    async with guarded.dial() as peer:
        assert await peer.ask(add(1, 0)) == Added(Status.UNAUTHORIZED, 1, 0)
        assert await peer.ask(Read(1, 0)) == ReadEntry(Status.UNAUTHORIZED, 1, 0)
        fence = Read(1, -1, KEY, fence=True)
        assert await peer.ask(fence) == ReadEntry(Status.UNAUTHORIZED, 1, -1)
        await peer.say(*[add(1, i) for i in range(5)])
        answers = [await peer.hear() for _ in range(5)]
        assert answers == [Added(Status.UNAUTHORIZED, 1, i) for i in range(5)]
        await authenticate(peer)
        assert (await peer.ask(Read(1, 0))).status is Status.NO_LEDGER, "nothing was stored"
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0), "nothing was fenced"


@pytest.mark.parametrize(
    "request_", [BatchRead(1, 0, 1, 10, 1000), Authenticate("org.example.Other", b"")], ids=str
)
async def test_what_ends_a_connection_of_version_2(guarded, request_):
    async with guarded.dial() as peer:
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await peer.ask(request_)


async def test_version_3_before_that(guarded):
    requests = [
        add(1, 0), Read(1, 0), ReadLac(1), WriteLac(1, 0, KEY, bytes(20)), ForceLedger(1),
        GetBookieInfo(True, True), Authenticate("org.example.Other", b"secret"),
    ]  # fmt: skip
    async with guarded.dial(3) as peer:
        for request in requests:
            response = await peer.ask(request)
            assert response.status is Status.UNAUTHORIZED, request
        assert await peer.ask(StartTls()) in (
            TlsStarted(Status.BAD_REQUEST), StatusOnly(Status.BAD_REQUEST)
        )  # fmt: skip
        await authenticate(peer)
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)


@pytest.mark.parametrize("version", [2, 3])
async def test_a_wrong_step_is_the_end(guarded, version):
    async with guarded.dial(version) as peer:
        await peer.say(Authenticate(PLUGIN, b"guess"))
        if version == 3:
            assert (await peer.hear()).status is Status.UNAUTHORIZED
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await peer.hear()
