"""Clients of a bookie that serves on a loopback port, in both versions of the protocol."""

import ssl
from contextlib import asynccontextmanager
from itertools import count

import trio

from magnetar.bookie.format import digests
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.front import BookieFront
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.rpc import version2, version3
from magnetar.bookie.rpc.messages import Add
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.tests.memory_machine import START_MS, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.link.backend import NO_BACKEND
from magnetar.core.link.front import Door, TlsContext
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.loop import Link
from magnetar.core.testing import FixedClock
from magnetar.core.testing.memory_disk import MemoryDisk

KEY = digests.master_key(b"")
CRC32C = digests.digest_type(LedgerMetadata.CRC32C, b"")


def entry(ledger_id, entry_id, payload=b"x", lac=-1, digest=CRC32C):
    return digests.seal_entry(digest, DigestHeader(ledger_id, entry_id, lac, 1), payload)


def add(ledger_id, entry_id, payload=b"x", lac=-1, key=KEY, digest=CRC32C, **more):
    return Add(ledger_id, entry_id, key, entry(ledger_id, entry_id, payload, lac, digest), **more)


class Peer:
    """One client; a transaction id of version 3 is the number of its request."""

    def __init__(self, stream, version):
        self.stream = stream
        self.version = version
        self.buffer = b""
        self.ids = count()

    def framed(self, request):
        if self.version == 2:
            body = version2.pack_request(request)
        else:
            body = version3.pack_request(next(self.ids), request)
        return len(body).to_bytes(4, "big") + body

    async def say(self, *requests):
        await self.stream.send_all(b"".join(map(self.framed, requests)))

    async def frame(self):
        while len(self.buffer) < 4 or len(self.buffer) < 4 + int.from_bytes(self.buffer[:4], "big"):
            received = await self.stream.receive_some()
            if not received:
                raise EOFError
            self.buffer += received
        end = 4 + int.from_bytes(self.buffer[:4], "big")
        frame, self.buffer = self.buffer[4:end], self.buffer[end:]
        return frame

    async def hear(self):
        with trio.fail_after(20):
            frame = await self.frame()
        if self.version == 2:
            return version2.parse_response(frame)
        return version3.parse_response(frame)[1]

    async def ask(self, *requests):
        """The response to the last of the requests, which are answered in order."""
        await self.say(*requests)
        for _ in requests[1:]:
            await self.hear()
        return await self.hear()


class Served:
    """A bookie that serves."""

    def __init__(self, disk, metadata, store, link, services, listener):
        self.disk = disk
        self.metadata = metadata
        self.store = store
        self.link = link
        self.services = services
        self.ledgers = services.ledgers
        self._listener = listener
        self._port = listener.getsockname()[1]
        self._kernel_bytes = 0

    def let_the_system_hold(self, size):
        """So much for each later connection, each way: some hold MB of what nobody reads."""
        self._kernel_bytes = size
        self._listener.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_SNDBUF, size)

    @asynccontextmanager
    async def dial(self, version=2):
        sock = trio.socket.socket()
        if self._kernel_bytes:
            sock.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, self._kernel_bytes)
        await sock.connect(("127.0.0.1", self._port))
        async with trio.SocketStream(sock) as stream:
            yield Peer(stream, version)

    def crashed(self):
        """Disk and metadata as a killed process leaves them now."""
        metadata = DictMetadata()
        metadata.values = self.metadata.without_leases()
        return MemoryDisk(image=self.disk.image.copy()), metadata

    async def checkpoint(self):
        """Move everything from memory to the disk."""
        await self.store.checkpoint()
        self.store.drop_read_cache()


@asynccontextmanager
async def serving(disk, metadata=None, limits=None, link_limits=None, tls=None, access=None):
    """A bookie on a disk in memory, and its link on a loopback port."""
    limits, link_limits = limits or RequestLimits(), link_limits or LinkLimits()
    metadata = metadata or DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        running = store._parts
        ledgers = ServedLedgers(running.bookie, FixedClock(START_MS), 1 << 30)
        context = TlsContext(tls) if isinstance(tls, ssl.SSLContext) else tls
        services = BookieServices(ledgers, running, limits, context, access)
        listener = trio.socket.socket()
        await listener.bind(("127.0.0.1", 0))
        front = BookieFront(services, [Door("bookie", listener._sock)])
        link = Link(running.storage.machine.clock, link_limits)
        link.serve(services.storage, NO_BACKEND)
        async with trio.open_nursery() as nursery:
            await nursery.start(link.run)
            nursery.start_soon(front.run)
            for one in front.listeners:
                link.listen(one)
            yield Served(disk, metadata, store, link, services, listener)
            nursery.cancel_scope.cancel()
        front.close()
