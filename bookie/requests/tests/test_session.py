"""A connection's requests, but for reads: adds, fences of them, keys, and the small ones."""

import ssl

import pytest
import trio

from magnetar.bookie.format import digests
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.session import run_of
from magnetar.bookie.requests.tests.peers import KEY, add, entry, serving
from magnetar.bookie.rpc.messages import (
    Add,
    Added,
    Authenticate,
    BookieInfo,
    Forced,
    ForceLedger,
    GetBookieInfo,
    Lac,
    Read,
    ReadEntry,
    ReadLac,
    StartTls,
    Status,
    StatusOnly,
    TlsStarted,
    WriteLac,
    WroteLac,
)
from magnetar.core.kernel.errors import Invalid
from magnetar.core.link.front import TlsContext

OTHER_KEY = digests.master_key(b"other")
FENCE = Read(1, 0, KEY, fence=True)

GOLDEN_ADD = bytes.fromhex(
    "000000a002010000850bf1071c5e3d8c24235676f8816ae0cbe2f14f"
    "00000000000000010000000000000000ffffffffffffffff00000000000000642a194824"
) + bytes(100)
"""Captured from a stock client."""


async def test_a_stock_clients_add_and_the_stock_bookies_answer(served):
    async with served.dial() as peer:
        await peer.stream.send_all(GOLDEN_ADD)
        assert (await peer.frame()).hex() == "02010000" + "0" * 8 + f"{1:016x}{0:016x}"


@pytest.mark.parametrize("version", [2, 3])
async def test_the_first_add_makes_the_ledger_and_its_key(served, version):
    async with served.dial(version) as peer:
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        refused = add(1, 1, key=OTHER_KEY)
        assert await peer.ask(refused) == Added(Status.UNAUTHORIZED, 1, 1)
        assert await peer.ask(Read(1, 1)) == ReadEntry(Status.NO_ENTRY, 1, 1)


async def test_many_adds_at_once_are_all_answered(served):
    async with served.dial() as peer:
        await peer.say(*(add(1, i) for i in range(500)), *(add(2, i) for i in range(3)))
        answers = [await peer.hear() for _ in range(503)]
        expected = [Added(Status.OK, 1, i) for i in range(500)]
        assert answers == expected + [Added(Status.OK, 2, i) for i in range(3)]


@pytest.mark.parametrize("version", [2, 3])
async def test_a_fenced_ledger_takes_adds_of_a_recovery_only(served, version):
    async with served.dial(version) as peer:
        await peer.ask(add(1, 0), FENCE)
        assert await peer.ask(add(1, 1)) == Added(Status.FENCED, 1, 1)
        again = add(1, 1, recovery=True, high_priority=True)
        for _ in range(2):  # a recovery that is repeated
            assert await peer.ask(again) == Added(Status.OK, 1, 1)


async def test_a_fence_of_a_ledger_that_was_never_here_survives_a_crash(served):
    async with served.dial() as peer:
        response = await peer.ask(FENCE)
        assert response.status is Status.NO_ENTRY
        left = served.crashed()
    async with serving(*left) as again, again.dial() as peer:
        assert (await peer.ask(add(1, 0))).status is Status.FENCED


@pytest.mark.parametrize("kind", ["CRC32", "HMAC", "CRC32C", "DUMMY"])
async def test_any_digest_is_stored_as_it_came(served, kind):
    digest = digests.digest_type(LedgerMetadata.DigestType.Value(kind), b"secret")
    async with served.dial() as peer:
        for payload in (b"", b"a", b"b" * 70_000):
            stored = [entry(7, i, payload, digest=digest) for i in range(3)]
            await peer.ask(*(Add(7, i, KEY, one) for i, one in enumerate(stored)))
            for _ in range(2):
                for i, one in enumerate(stored):
                    assert (await peer.ask(Read(7, i))).entry == one
                await served.checkpoint()


@pytest.mark.parametrize(("ledger_id", "entry_id"), [(-1, 0), (1, -0x2000), (1, -1)])
@pytest.mark.parametrize("version", [2, 3])
async def test_negative_ids_would_be_notes_in_the_journal(served, version, ledger_id, entry_id):
    async with served.dial(version) as peer:
        response = await peer.ask(add(ledger_id, entry_id))
        assert response == Added(Status.BAD_REQUEST, ledger_id, entry_id)


@pytest.mark.parametrize("size", [0, 19, 21, 4 << 20])
async def test_a_key_that_no_client_makes(served, size):
    """Version 3 has no length for keys; the bookie keeps that of each ledger in use."""
    key = b"k" * size
    packet = digests.seal_lac(digests.digest_type(LedgerMetadata.CRC32C, b""), 1, 0)
    async with served.dial(3) as peer:
        for request in (
            add(1, 0, key=key),
            WriteLac(1, 0, key, packet),
            Read(1, 0, key, fence=True),
        ):
            assert (await peer.ask(request)).status is Status.UNAUTHORIZED
        assert (await peer.ask(Read(1, 0))).status is Status.NO_LEDGER
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        assert (await peer.ask(Read(1, 0, key))).status is Status.OK


async def test_an_add_whose_entry_is_another(served):
    async with served.dial(3) as peer:
        response = await peer.ask(Add(1, 0, KEY, entry(1, 5)))
        assert response == Added(Status.BAD_REQUEST, 1, 0)
    with pytest.raises(Invalid):
        run_of(Add(1, 0, KEY, bytes(31)))


async def test_a_read_only_bookie_takes_adds_of_a_recovery(served):
    async with served.dial() as peer:
        await peer.ask(add(1, 0))
        served.ledgers.read_only = True
        assert (await peer.ask(add(1, 1))).status is Status.READ_ONLY
        urgent = add(1, 1, recovery=True, high_priority=True)
        assert (await peer.ask(urgent)).status is Status.OK
        assert (await peer.ask(FENCE)).status is Status.OK


async def test_an_explicit_lac_is_kept(served):
    digest = digests.digest_type(LedgerMetadata.CRC32C, b"")
    packet = digests.seal_lac(digest, 1, 0)
    async with served.dial(3) as peer:
        await peer.ask(add(1, 0), add(1, 1))
        assert await peer.ask(WriteLac(1, 0, KEY, packet)) == WroteLac(Status.OK, 1)
        older = digests.seal_lac(digest, 1, -1)
        assert await peer.ask(WriteLac(1, -1, KEY, older)) == WroteLac(Status.OK, 1)
        assert await peer.ask(ReadLac(1)) == Lac(Status.OK, 1, packet, entry(1, 1))
        refused = WriteLac(1, 0, OTHER_KEY, packet)
        assert (await peer.ask(refused)).status is Status.UNAUTHORIZED
        assert (await peer.ask(WriteLac(2, 0, KEY, packet))).status is Status.BAD_REQUEST
        assert (await peer.ask(Read(1, 0))).lac == 0


async def test_a_forced_ledger_and_the_disk(served):
    async with served.dial(3) as peer:
        assert await peer.ask(add(1, 0), ForceLedger(1)) == Forced(Status.OK, 1)
        info = await peer.ask(GetBookieInfo(total=True, free=False))
        assert info == BookieInfo(Status.OK, served.services.usage().total_bytes, None)
        info = await peer.ask(GetBookieInfo(total=False, free=True))
        assert info == BookieInfo(Status.OK, None, served.services.usage().free_bytes)


@pytest.mark.parametrize("version", [2, 3])
async def test_a_client_with_a_plugin_hears_that_authentication_is_off(served, version):
    async with served.dial(version) as peer:
        response = await peer.ask(Authenticate("org.example.Sasl", b"token"))
        assert response == Authenticate("AuthDisabledPlugin", b"")
        assert (await peer.ask(add(1, 0))).status is Status.OK


async def test_without_certificates_there_is_no_tls(served):
    async with served.dial(3) as peer:
        assert await peer.ask(StartTls()) in (
            TlsStarted(Status.BAD_REQUEST), StatusOnly(Status.BAD_REQUEST)
        )  # fmt: skip
        assert (await peer.ask(add(1, 0))).status is Status.OK


@pytest.mark.parametrize(
    "bytes_sent",
    [
        bytes.fromhex("7fffffff"),
        bytes.fromhex("00000004 02630000"),
        bytes.fromhex("00000000"),
        b"GET / HTTP/1.1\r\n\r\n",
        GOLDEN_ADD[:20].replace(b"\xa0", b"\x10", 1),
    ],
)
async def test_bytes_that_make_no_sense_end_their_connection_only(served, bytes_sent):
    async with served.dial() as good, served.dial() as bad:
        await bad.stream.send_all(bytes_sent)
        with pytest.raises(EOFError):
            await bad.hear()
        assert (await good.ask(add(1, 0))).status is Status.OK


async def test_version_3_after_version_2_ends_the_connection(served):
    async with served.dial() as peer:
        await peer.ask(add(1, 0))
        peer.version = 3
        await peer.say(Read(1, 0))
        with pytest.raises(EOFError):
            await peer.frame()


@pytest.mark.parametrize("version", [2, 3])
async def test_tls_begins_behind_its_response(disk, tls_contexts, version):
    server, client = tls_contexts
    async with serving(disk, tls=server) as served, served.dial(3) as peer:
        assert await peer.ask(StartTls()) == TlsStarted(Status.OK)
        plain = peer.stream
        peer.stream = trio.SSLStream(plain, client, server_hostname="localhost")
        peer.version = version
        await peer.ask(add(1, 0, b"secret" * 20_000))
        assert (await peer.ask(Read(1, 0))).entry == entry(1, 0, b"secret" * 20_000)
        if version == 3:
            assert await peer.ask(StartTls()) in (
                TlsStarted(Status.BAD_REQUEST), StatusOnly(Status.BAD_REQUEST)
            )  # fmt: skip


async def test_tls_is_that_of_the_moment(disk, tls_contexts):
    """The files of a certificate may be new ones."""
    server, client = tls_contexts
    context = TlsContext(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    async with serving(disk, tls=context) as served, served.dial(3) as peer:
        context.current = server
        assert await peer.ask(StartTls()) == TlsStarted(Status.OK)
        peer.stream = trio.SSLStream(peer.stream, client, server_hostname="localhost")
        assert await peer.ask(add(1, 0)) is not None


async def test_plain_bytes_behind_a_request_for_tls_are_not_requests(disk, tls_contexts):
    async with serving(disk, tls=tls_contexts[0]) as served:
        async with served.dial(3) as peer:
            await peer.say(StartTls(), add(1, 0))
            assert await peer.hear() == TlsStarted(Status.OK)
            await peer.say(add(1, 0))
            while await peer.stream.receive_some():
                pass  # an alert of TLS, and the end
        async with served.dial() as peer:
            assert (await peer.ask(Read(1, 0))).status is Status.NO_LEDGER
