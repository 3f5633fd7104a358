"""Clients that have to prove who they are, by a mechanism of two steps that these tests have."""

from contextlib import asynccontextmanager

import pytest
import trio

from magnetar.bookie.format import digests
from magnetar.bookie.requests import session
from magnetar.bookie.requests.authentication import (
    Admission,
    BookieAccess,
    Confined,
    PeerGrant,
)
from magnetar.bookie.requests.tests.peers import CRC32C, KEY, add, serving
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import (
    Added,
    Authenticate,
    BatchRead,
    ForceLedger,
    GetBookieInfo,
    ListEntries,
    Read,
    ReadEntry,
    ReadLac,
    StartTls,
    Status,
    StatusOnly,
    TlsStarted,
    Unanswerable,
    WriteLac,
)
from magnetar.bookie.rpc.version3 import Header
from magnetar.bookie.rpc.wire import Call
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.testing.memory_disk import MemoryDisk

PLUGIN = "org.example.Passwords"


TICKET = "org.example.Tickets"


class Password:
    """A question, and its answer."""

    def __init__(self):
        self.grant = None

    def respond(self, said):
        if said == b"":
            return b"the word?"
        if said != b"secret":
            raise Unauthenticated("a wrong word")
        self.grant = PeerGrant("client")
        return b"welcome"


class Ticket:
    """Shown once: for how many seconds, if that is said, and to read ledger 1."""

    def __init__(self):
        self.grant = None

    def respond(self, said):
        self.grant = PeerGrant("reader", float(said) if said else None, frozenset({1}))
        return b""


class Log:
    def __init__(self):
        self.failures = []
        self.proofs = []
        self.barred = set()

    def failed(self, host, mechanism, why):
        self.failures.append((host, mechanism, why))


@pytest.fixture
def log():
    return Log()


@pytest.fixture
async def guarded(disk, log):
    access = BookieAccess(
        {PLUGIN: Password, TICKET: Ticket},
        None,
        log.barred.__contains__,
        log.failed,
        log.proofs.append,
    )
    async with serving(disk, access=access) as one:
        yield one


async def authenticate(peer):
    assert await peer.ask(Authenticate(PLUGIN, b"")) == Authenticate(PLUGIN, b"the word?")
    assert await peer.ask(Authenticate(PLUGIN, b"secret")) == Authenticate(PLUGIN, b"welcome")


@pytest.mark.parametrize("version", [2, 3])
async def test_who_has_proved_it_may_do_everything(guarded, log, version):
    async with guarded.dial(version) as peer:
        await authenticate(peer)
        assert log.proofs == [PLUGIN], "one, whatever the number of steps"
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
async def test_a_wrong_step_is_the_end(guarded, log, version):
    async with guarded.dial(version) as peer:
        await peer.say(Authenticate(PLUGIN, b"guess"))
        if version == 3:
            assert (await peer.hear()).status is Status.UNAUTHORIZED
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await peer.hear()
    assert log.failures == [("127.0.0.1", PLUGIN, "a wrong word")]


@pytest.mark.parametrize("version", [2, 3])
async def test_an_address_that_has_to_wait_is_not_listened_to(guarded, log, version):
    log.barred.add("127.0.0.1")
    async with guarded.dial(version) as peer:
        await peer.say(Authenticate(TICKET, b""))
        if version == 3:
            assert (await peer.hear()).status is Status.UNAUTHORIZED
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await peer.hear()


@pytest.mark.parametrize("version", [2, 3])
async def test_a_proof_may_be_shown_again_and_by_another_mechanism(guarded, version):
    async with guarded.dial(version) as peer:
        await authenticate(peer)
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        again = await peer.ask(Authenticate(PLUGIN, b"secret"))
        assert again == Authenticate(PLUGIN, b"welcome")
        assert await peer.ask(add(1, 1)) == Added(Status.OK, 1, 1)
        assert await peer.ask(Authenticate(TICKET, b"60")) == Authenticate(TICKET, b"")
        assert (await peer.ask(add(1, 2))).status is Status.UNAUTHORIZED


@pytest.mark.parametrize("version", [2, 3])
async def test_an_empty_message_of_who_was_let_in_is_no_other_proof(guarded, version):
    """As the SASL of Java's clients ends (`SASLClientAuthProvider.java`)."""
    async with guarded.dial(version) as peer:
        await authenticate(peer)
        last = await peer.ask(Authenticate(PLUGIN, b""))
        assert last == Authenticate("AuthDisabledPlugin", b"")
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)


@pytest.fixture
async def stored(guarded):
    """Two entries in each of two ledgers."""
    async with guarded.dial() as peer:
        await authenticate(peer)
        for ledger_id in (1, 2):
            for entry_id in (0, 1):
                await peer.ask(add(ledger_id, entry_id))
    return guarded


@pytest.mark.parametrize("version", [2, 3])
async def test_a_ticket_reads_its_ledgers_and_does_nothing_else(stored, version):
    async with stored.dial(version) as peer:
        await peer.ask(Authenticate(TICKET, b""))
        assert (await peer.ask(Read(1, 0))).status is Status.OK
        assert (await peer.ask(Read(1, -1))).status is Status.OK
        for request in (Read(2, 0), Read(1, 0, KEY, fence=True), add(1, 2), add(3, 0)):
            assert (await peer.ask(request)).status is Status.UNAUTHORIZED, request
        await peer.say(*[add(1, i) for i in range(2, 7)])
        for _ in range(5):
            assert (await peer.hear()).status is Status.UNAUTHORIZED
        assert (await peer.ask(Read(1, 1))).status is Status.OK
    async with stored.dial() as peer:
        await authenticate(peer)
        assert await peer.ask(add(1, 2)) == Added(Status.OK, 1, 2), "nothing was fenced"


async def test_batches_of_a_ticket(stored):
    async with stored.dial() as peer:
        await peer.ask(Authenticate(TICKET, b""))
        await peer.say(BatchRead(1, 0, 7, 10, 10_000))
        frame = await peer.frame()
        assert frame[4:8] == bytes(4), "ok"
        for request in (BatchRead(2, 0, 8, 10, 10_000), BatchRead(1, 0, 8, 9, 9, KEY, fence=True)):
            await peer.say(request)
            frame = await peer.frame()
            assert int.from_bytes(frame[4:8]) == 102, "BookieProtocol.EUA"
            assert int.from_bytes(frame[24:32]) == 8, "the request is named"


async def test_what_version_3_alone_has_with_a_ticket(stored):
    async with stored.dial(3) as peer:
        await peer.ask(Authenticate(TICKET, b""))
        assert (await peer.ask(ReadLac(1))).status is Status.OK
        assert (await peer.ask(ListEntries(1))).status is Status.OK
        packet = digests.seal_lac(CRC32C, 1, 0)
        for request in (
            ReadLac(2), ListEntries(2), WriteLac(1, 0, KEY, packet), ForceLedger(1),
            GetBookieInfo(True, True),
        ):  # fmt: skip
            assert (await peer.ask(request)).status is Status.UNAUTHORIZED, request


@pytest.mark.parametrize("version", [2, 3])
async def test_a_proof_that_expires_ends_its_connection(stored, version):
    async with stored.dial(version) as peer:
        await peer.ask(Authenticate(TICKET, b"0.2"))
        await peer.ask(Authenticate(TICKET, b"600"))
        assert len(stored.services.deadlines) == 1, "the last one counts"
        assert (await peer.ask(Read(1, 0))).status is Status.OK
        await peer.ask(Authenticate(TICKET, b"0.01"))
        with pytest.raises((EOFError, trio.BrokenResourceError)), trio.fail_after(20):
            await peer.frame()
        assert not stored.services.deadlines


@pytest.mark.parametrize("version", [2, 3])
async def test_who_proves_nothing_for_long_is_left(guarded, version, monkeypatch):
    monkeypatch.setattr(session, "PROOF_SECONDS", 0.01)
    async with guarded.dial(version) as peer:
        with pytest.raises((EOFError, trio.BrokenResourceError)), trio.fail_after(20):
            await peer.frame()
        assert not guarded.services.deadlines


@pytest.mark.parametrize("version", [2, 3])
async def test_a_megabyte_is_a_step_like_any_other(guarded, version):
    async with guarded.dial(version) as peer:
        await peer.say(Authenticate(PLUGIN, bytes(1 << 20)))
        if version == 3:
            assert (await peer.hear()).status is Status.UNAUTHORIZED
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await peer.hear()
    async with guarded.dial(version) as peer:
        await authenticate(peer)


EVERY = (
    add(9, 0), Read(9, 0), Read(9, 0, KEY, fence=True), BatchRead(9, 0, 1, 10, 1000), ReadLac(9),
    ListEntries(9), WriteLac(9, 0, KEY, bytes(20)), ForceLedger(9), GetBookieInfo(True, True),
    Unanswerable(Status.BAD_VERSION), StartTls(), Authenticate("unknown", b"x"),
)  # fmt: skip


def test_every_request_is_among_these():
    assert {type(each) for each in EVERY} == set(session._HANDLERS)


@pytest.mark.parametrize("header", [version2.header(version2.READ), Header(1, 0)], ids=["2", "3"])
@pytest.mark.parametrize("request_", EVERY, ids=lambda each: type(each).__name__)
def test_nothing_is_carried_out_for_who_may_not(request_, header):
    """Neither before a proof, nor with a ticket for another ledger."""
    admission = Admission(BookieAccess({PLUGIN: Password}), "h")
    for gate in (admission, Confined(frozenset({1}))):
        try:
            answer = gate.answer(Call(header, request_))
        except Unauthenticated:
            continue
        if isinstance(request_, StartTls):
            assert answer is None
        elif isinstance(request_, Authenticate) and gate is not admission:
            assert answer is None, "the session looks whether it is another proof"
        else:
            assert answer.status is Status.UNAUTHORIZED
    assert admission.grant is None


@asynccontextmanager
async def encrypted(disk, contexts, certificate, version):
    """A connection to a bookie for which the client's certificate proves what the test says."""
    server, client = contexts
    access = BookieAccess({PLUGIN: Password, TICKET: Ticket}, certificate)
    async with serving(disk, tls=server, access=access) as served, served.dial(3) as peer:
        assert await peer.ask(StartTls()) == TlsStarted(Status.OK)
        peer.stream = trio.SSLStream(peer.stream, client, server_hostname="localhost")
        peer.version = version
        yield peer


@pytest.mark.parametrize("version", [2, 3])
async def test_a_certificate_is_a_proof(tls_contexts, version):
    async with encrypted(
        MemoryDisk(), tls_contexts, lambda _: PeerGrant("gateway"), version
    ) as peer:
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)
    async with encrypted(MemoryDisk(), tls_contexts, lambda _: None, version) as peer:
        assert (await peer.ask(add(1, 1))).status is Status.UNAUTHORIZED
        await authenticate(peer)
        assert await peer.ask(add(1, 1)) == Added(Status.OK, 1, 1)


@pytest.mark.parametrize("version", [2, 3])
async def test_what_a_client_says_goes_before_its_certificate(disk, tls_contexts, version):
    """A client that has both says something first, and waits for the answer to it."""
    with trio.fail_after(20):
        async with encrypted(disk, tls_contexts, lambda _: PeerGrant("gateway"), version) as peer:
            await authenticate(peer)
            assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)
            await peer.ask(Authenticate(TICKET, b"100"))
            assert (await peer.ask(add(1, 1))).status is Status.UNAUTHORIZED
