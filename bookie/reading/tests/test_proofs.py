"""Reading from bookies that ask who reads."""

import pytest
import trio

from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.reading.errors import UnreachableEntry
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.read_handle import open_ledger
from magnetar.bookie.reading.sources import PlannedLedgers
from magnetar.bookie.requests.authentication import BookieAccess, PeerGrant
from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie.rpc.credentials import TICKET, TOKEN
from magnetar.bookie.rpc.messages import Authenticate, Status
from magnetar.core.kernel.errors import StorageFailed, Unauthenticated
from magnetar.core.testing.memory_disk import MemoryDisk

COUNT = 20


class Word:
    def __init__(self):
        self.grant = None

    def respond(self, said):
        if said == b"all":
            self.grant = PeerGrant("all")
        elif said.isdigit():
            self.grant = PeerGrant("a ticket", 100, frozenset({int(said)}))
        else:
            raise Unauthenticated("a wrong word")
        return b""


def metadata(port, *, closed=True):
    made = LedgerMetadata(
        quorumSize=1, ensembleSize=1, ackQuorumSize=1, length=COUNT, lastEntryId=COUNT - 1,
        state=ledger_metadata.CLOSED if closed else LedgerMetadata.OPEN,
        digestType=LedgerMetadata.CRC32C, password=b"",
    )  # fmt: skip
    made.segment.add(ensembleMember=[f"127.0.0.1:{port}"], firstEntryId=0)
    return ledger_metadata.encode(made)


@pytest.fixture
async def bookie():
    access = BookieAccess({TOKEN: Word, TICKET: Word})
    async with serving(MemoryDisk(), access=access) as served:
        async with served.dial(3) as peer:
            await peer.ask(Authenticate(TOKEN, b"all"))
            for entry_id in range(COUNT):
                assert (await peer.ask(add(1, entry_id, lac=entry_id - 1))).status is Status.OK
        yield served


async def read(served, *, closed=True, batches=True, **shown):
    source = PlannedLedgers({1: metadata(served._port, closed=closed)}, **shown)
    options = ReadOptions(batches=batches, batch_bytes=100)

    def run():
        with open_ledger(1, source, options) as ledger:
            return sum(len(each.payloads) for each in ledger.read())

    return await trio.to_thread.run_sync(run)


@pytest.mark.parametrize("batches", [True, False])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("shown", [{"tickets": {1: b"1"}}, {"words": Authenticate(TOKEN, b"all")}])
async def test_with_what_is_right(bookie, shown, closed, batches):
    found = await read(bookie, closed=closed, batches=batches, **shown)
    assert found == (COUNT if closed else COUNT - 1)


@pytest.mark.parametrize("batches", [True, False])
async def test_with_a_wrong_ticket(bookie, batches):
    with pytest.raises(UnreachableEntry, match="refuses the ticket of this reader, which has ex"):
        await read(bookie, batches=batches, tickets={1: b"wrong"})
    with pytest.raises(StorageFailed, match="refuses the ticket of this reader"):
        await read(bookie, closed=False, batches=batches, tickets={1: b"wrong"})


async def test_with_a_ticket_of_another_ledger(bookie):
    with pytest.raises(UnreachableEntry, match="answers: unauthorized"):
        await read(bookie, tickets={1: b"2"})


async def test_with_nothing(bookie):
    with pytest.raises(UnreachableEntry, match="unauthorized"):
        await read(bookie)


async def test_a_plugin_that_the_bookie_does_not_have(bookie):
    with pytest.raises(UnreachableEntry, match="refuses the other of this reader"):
        await read(bookie, words=Authenticate("other", b"all"))


async def test_a_bookie_that_asks_nobody():
    async with serving(MemoryDisk()) as served:
        async with served.dial() as peer:
            for entry_id in range(COUNT):
                await peer.ask(add(1, entry_id))
        assert await read(served, tickets={1: b"1"}) == COUNT
