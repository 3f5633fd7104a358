"""What connections share: the count of reads that wait goes back to nothing."""

from magnetar.bookie.requests.tests.peers import Peer, add
from magnetar.bookie.rpc.messages import LAST_ENTRY, Read, Status


async def test_reads_that_wait_are_counted_for_all_connections(served):
    async with served.dial() as one, served.dial() as other:
        await one.ask(add(1, 0))
        for peer in (one, other):
            await peer.say(*[Read(1, LAST_ENTRY)] * 50)
        for peer in (one, other):
            assert isinstance(peer, Peer)
            for _ in range(50):
                assert (await peer.hear()).status is Status.OK
        assert served.services.reads.count == 0


async def test_a_connection_that_leaves_takes_its_reads_with_it(served):
    async with served.dial() as stays:
        await stays.ask(add(1, 0))
        async with served.dial() as leaves:
            await leaves.say(*[Read(1, LAST_ENTRY)] * 500)
        assert (await stays.ask(Read(1, LAST_ENTRY))).status is Status.OK
        while served.services.reads.count:
            assert (await stays.ask(Read(1, 0))).status is Status.OK
