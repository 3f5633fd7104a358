"""Apache's limits of adds and reads in progress: connections wait, and nothing is refused."""

import trio

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie.rpc.messages import Added, Read, Status

COUNT = 3_000


async def test_adds_wait_in_their_connections(disk) -> None:
    limits = RequestLimits(max_adds_in_progress_limit=10)
    async with serving(disk, limits=limits) as served, served.dial() as one, served.dial(3) as two:
        async with trio.open_nursery() as nursery:
            for ledger_id, peer in ((1, one), (2, two)):
                nursery.start_soon(peer.say, *[add(ledger_id, i, b"x" * 500) for i in range(COUNT)])
                nursery.start_soon(hears_adds, peer, ledger_id)
        assert served.services.adds.blocked > 10
        assert served.services.adds.count == 0
        assert not any(one.paused for one in served.link._connections.values())


async def hears_adds(peer, ledger_id) -> None:
    for entry_id in range(COUNT):
        assert await peer.hear() == Added(Status.OK, ledger_id, entry_id)


async def test_reads_wait_in_their_connections(disk) -> None:
    limits = RequestLimits(max_reads_in_progress_limit=10)
    async with serving(disk, limits=limits) as served, served.dial() as peer:
        await peer.ask(add(1, 0, b"z" * 1000))
        await served.checkpoint()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.say, *[Read(1, 0)] * COUNT)
            for _ in range(COUNT):
                assert (await peer.hear()).status is Status.OK
        assert served.services.reads.blocked > 10
        assert served.services.reads.count == 0
        assert (await peer.ask(Read(1, 0))).status is Status.OK


async def test_who_leaves_while_it_waits_holds_up_nobody(disk) -> None:
    limits = RequestLimits(max_adds_in_progress_limit=1, max_reads_in_progress_limit=1)
    async with serving(disk, limits=limits) as served, served.dial() as stays:
        async with served.dial() as leaves:
            await leaves.say(*[add(1, i) for i in range(100)], *[Read(1, 0)] * 100)
        for entry_id in range(20):
            assert await stays.ask(add(2, entry_id)) == Added(Status.OK, 2, entry_id)
            assert (await stays.ask(Read(2, entry_id))).status is Status.OK
