"""What a bookie learns of others; `interop_tests/bookkeeper` has one of a real cluster."""

from __future__ import annotations

import pytest

from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.overview import ClusterOverview
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie_peers import READ_BYTES_MAX, BookiePeers
from magnetar.core.kernel.errors import LedgerNotFound, Overloaded
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.memory_disk import MemoryDisk
from magnetar.core.testing.metadata import overwrite
from magnetar.security.shown_credentials import ShownCredentials
from magnetar.settings.security import Security


async def test_bookies_that_answer_tell_their_room_and_entries_are_read() -> None:
    store = MemoryMetadata()
    cluster = await initialize_cluster(store, "one")
    ledgers = ClusterLedgers(store, cluster)
    peers = BookiePeers(
        ClusterOverview(store, cluster), ledgers, SystemThreads(), ShownCredentials(Security())
    )
    assert await peers.rooms() == {}
    async with serving(MemoryDisk()) as served, served.dial() as peer:
        here = f"127.0.0.1:{served._port}"
        for name in (here, "127.0.0.1:1", "a-name"):  # one that nobody reaches, one without address
            await overwrite(store, f"/ledgers/available/{name}", b"")
        usage = served.services.usage()
        assert await peers.rooms() == {here: (usage.free_bytes, usage.total_bytes)}
        for entry_id, payload in enumerate((b"a", b"b", bytes(READ_BYTES_MAX))):
            await peer.ask(add(1, entry_id, payload))
        segment = LedgerMetadata.Segment(ensembleMember=[here], firstEntryId=0)
        await ledgers.create(
            1,
            LedgerMetadata(
                quorumSize=1, ensembleSize=1, length=9, lastEntryId=2,
                state=LedgerMetadata.CLOSED, segment=[segment], digestType=LedgerMetadata.CRC32C,
                password=b"",
            ),
        )  # fmt: skip
        assert await peers.entries(1, 0, 1) == {0: b"a", 1: b"b"}
        assert await peers.entries(1, 7, None) == {}
        with pytest.raises(Overloaded, match="magnetar ledger read"):
            await peers.entries(1, 1, None)
        with pytest.raises(LedgerNotFound):
            await peers.entries(2, 0, None)
