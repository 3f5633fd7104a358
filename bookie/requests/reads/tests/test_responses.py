"""Sizes of responses, found before they are built: from memory and from the disk."""

import pytest

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.reads.responses import RESPONSE_BYTES, Responses, size_of
from magnetar.bookie.requests.tests.peers import KEY, add
from magnetar.bookie.rpc.messages import LAST_ENTRY, BatchRead, ListEntries, Read, ReadLac
from magnetar.bookie.rpc.wire import Call


@pytest.fixture
def responses(served):
    return Responses(served.ledgers, RequestLimits())


READS = [
    Read(1, 0),
    Read(1, 2),
    Read(1, LAST_ENTRY),
    Read(1, 1, KEY, fence=True),
    Read(1, LAST_ENTRY, previous_lac=0, piggyback=True),
    ReadLac(1),
    BatchRead(1, 1, 7, 1, 1 << 20),
]


@pytest.mark.parametrize("request_", READS, ids=repr)
async def test_the_size_of_a_response_is_known_before_it_is_built(served, responses, request_):
    async with served.dial() as peer:
        await peer.ask(add(1, 0, b"p"), add(1, 1, b"p" * 70_000), add(1, 2, b"p" * 500, lac=1))
        for _ in range(2):
            size = await responses.size(request_)
            found = await responses.from_disk(Call(2, request_), 1 << 20)
            assert size == size_of(found)
            at_once = responses.size_at_once(request_)
            assert at_once in (None, size)
            await served.checkpoint()
        assert served.store._bookie.lookup.counters.from_disk


async def test_nothing_is_read_for_a_size(served, responses):
    async with served.dial() as peer:
        await peer.ask(add(1, 0, b"p" * 70_000))
        await served.checkpoint()
        before = served.store.statistics().bytes_read
        assert await responses.size(Read(1, 0)) > 70_000
        assert served.store.statistics().bytes_read == before


async def test_what_is_not_there_is_small(served, responses):
    async with served.dial() as peer:
        await peer.ask(add(1, 0))
        for request in (
            Read(1, 1),
            Read(2, 0),
            ReadLac(2),
            ListEntries(1),
            Read(1, LAST_ENTRY, previous_lac=2**63 - 1, piggyback=True),
            Read(1, LAST_ENTRY, piggyback=True),
            BatchRead(1, 5, 7, 1, 100),
        ):
            assert await responses.size(request) == RESPONSE_BYTES
