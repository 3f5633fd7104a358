"""Encrypted connections to our bookies, and to peers that end them, or do not receive."""

import ssl
from contextlib import asynccontextmanager

import pytest
import trio

from magnetar.bookie.client.connection.authenticated_network import AuthenticatedNetwork
from magnetar.bookie.client.connection.connections import Connections
from magnetar.bookie.client.connection.encrypted_network import EncryptedNetwork
from magnetar.bookie.client.connection.question import ask_once
from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.format import digests, entries
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.authentication import BookieAccess, PeerGrant
from magnetar.bookie.requests.tests.peers import KEY, serving
from magnetar.bookie.rpc import version3
from magnetar.bookie.rpc.client_wire import pack_adds
from magnetar.bookie.rpc.credentials import TOKEN, TokenCredentials
from magnetar.bookie.rpc.messages import BookieInfo, GetBookieInfo, Read, Status, TlsStarted
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.testing.memory_disk import MemoryDisk

QUESTION = GetBookieInfo(True, True)
MEBIBYTE = 1 << 20


def encrypted(context):
    return EncryptedNetwork(SystemNetwork(), lambda: context)


async def test_a_bookie_is_asked(tls_contexts):
    server, client = tls_contexts
    async with serving(MemoryDisk(), tls=server) as served:
        found = await ask_once(encrypted(client), "127.0.0.1", served._port, QUESTION)
        assert isinstance(found, BookieInfo)


async def test_a_bookie_without_tls(tls_contexts):
    async with serving(MemoryDisk()) as served:
        with pytest.raises(StorageFailed, match="does not speak TLS"):
            await ask_once(encrypted(tls_contexts[1]), "127.0.0.1", served._port, QUESTION)


async def test_a_certificate_that_is_not_trusted(tls_contexts):
    server, _ = tls_contexts
    async with serving(MemoryDisk(), tls=server) as served:
        stranger = encrypted(ssl.create_default_context())
        with pytest.raises(StorageFailed, match=r"no TLS with the bookie at .*: self-signed"):
            await ask_once(stranger, "127.0.0.1", served._port, QUESTION)
        with trio.fail_after(20):
            while served.link._connections:
                await trio.lowlevel.checkpoint()


class Certificate:
    def __init__(self, grant):
        self._grant = grant
        self.looked = 0

    def __call__(self, tls):
        assert tls.version().startswith("TLSv1.")
        self.looked += 1
        return self._grant


async def test_a_certificate_is_a_proof(tls_contexts):
    server, client = tls_contexts
    access = BookieAccess({}, Certificate(PeerGrant("gateway")))
    async with serving(MemoryDisk(), tls=server, access=access) as served:
        where = "127.0.0.1", served._port
        assert isinstance(await ask_once(encrypted(client), *where, QUESTION), BookieInfo)
        plain = await ask_once(SystemNetwork(), *where, QUESTION)
        assert plain.status is Status.UNAUTHORIZED


async def test_a_certificate_that_proves_nothing_leaves_other_ways(tls_contexts):
    class Word:
        grant = None

        def respond(self, said):
            self.grant = PeerGrant("client")
            return b""

    server, client = tls_contexts
    certificate = Certificate(None)
    access = BookieAccess({TOKEN: Word}, certificate)
    async with serving(MemoryDisk(), tls=server, access=access) as served:
        where = "127.0.0.1", served._port
        refused = await ask_once(encrypted(client), *where, QUESTION)
        assert refused.status is Status.UNAUTHORIZED
        both = AuthenticatedNetwork(encrypted(client), TokenCredentials(TOKEN, b"x"))
        assert isinstance(await ask_once(both, *where, QUESTION), BookieInfo)
        assert certificate.looked == 1, "what a client says goes before what it shows"


@pytest.mark.parametrize("large", [False, True])
async def test_many_adds_and_their_reads(tls_contexts, large):
    """More than the system takes at once, both ways."""
    server, client = tls_contexts
    size, count = (MEBIBYTE, 12) if large else (100, 2000)
    crc32c = digests.digest_type(LedgerMetadata.CRC32C, b"")
    async with (
        serving(MemoryDisk(), tls=server) as served,
        connected(encrypted(client), served._port) as one,
    ):
        done = []
        for first in range(count):
            run = entries.seal(1, first, -1, 0, [bytes([first % 251]) * size])
            added = Completion()
            one.add(run, pack_adds(run, KEY), added.done)
            done.append(added)
        for added in done:
            assert await added.result() is Status.OK
        asked = []
        for entry_id in range(count):
            read = Completion()
            one.ask(Read(1, entry_id), read.done)
            asked.append(read)
        for entry_id, read in enumerate(asked):
            found = await read.result()
            _, payload = digests.open_entry(crc32c, 1, entry_id, found.entry)
            assert payload == bytes([entry_id % 251]) * size


@asynccontextmanager
async def connected(network, port):
    async with trio.open_nursery() as nursery:
        connections = Connections(
            network, lambda _: ("127.0.0.1", port), ConnectionSettings(), None, nursery
        )
        nursery.start_soon(connections.run)
        with trio.fail_after(30):
            yield connections.to("b:1")
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def peer(context, serve):
    """One that begins TLS as a bookie does, and goes on as `serve` does."""

    async def begin(stream):
        size = int.from_bytes(await stream.receive_some(4))
        header, _ = version3.parse_request(await stream.receive_some(size))
        body = version3.pack_response(header, TlsStarted(Status.OK))
        await stream.send_all(len(body).to_bytes(4) + body)
        await serve(stream, context)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, begin, 0)
        with trio.fail_after(20):
            yield "127.0.0.1", listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def test_a_peer_that_ends_it_in_order_and_one_that_just_does(tls_contexts):
    server, client = tls_contexts

    async def in_order(stream, context):
        encrypted_stream = trio.SSLStream(stream, context, server_side=True)
        await encrypted_stream.do_handshake()
        await encrypted_stream.aclose()

    async def at_once(stream, context):
        encrypted_stream = trio.SSLStream(stream, context, server_side=True)
        await encrypted_stream.do_handshake()
        await stream.aclose()

    for serve in (in_order, at_once):
        async with peer(server, serve) as where:
            with pytest.raises((StorageFailed, OSError)):
                await ask_once(encrypted(client), *where, QUESTION)


async def test_a_peer_that_says_something_else_than_tls(tls_contexts):
    server, client = tls_contexts

    async def nonsense(stream, _context):
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def nothing(stream, _context):
        await stream.receive_some()
        await stream.aclose()

    for serve, why in ((nonsense, "no TLS with"), (nothing, None)):
        async with peer(server, serve) as where:
            with pytest.raises((StorageFailed, OSError), match=why):
                await ask_once(encrypted(client), *where, QUESTION)


async def test_damaged_records_end_it(tls_contexts):
    server, client = tls_contexts

    async def damaged(stream, context):
        encrypted_stream = trio.SSLStream(stream, context, server_side=True)
        await encrypted_stream.do_handshake()
        await encrypted_stream.receive_some()
        await stream.send_all(b"\x17\x03\x03\x00\x20" + bytes(32))

    async with peer(server, damaged) as where:
        with pytest.raises(OSError):  # noqa: PT011  # OpenSSL's text
            await ask_once(encrypted(client), *where, QUESTION)
