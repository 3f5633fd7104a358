"""The polls of one connection; `test_reads.py` has what clients see of them."""

import trio

from magnetar.bookie.requests.reads import long_polls
from magnetar.bookie.requests.tests.peers import add
from magnetar.bookie.rpc.messages import LAST_ENTRY, Read
from magnetar.bookie.rpc.wire import Call
from magnetar.bookie.server.ledgers.lac_waiters import WAITERS_MAX


def poll(timeout_ms):
    return Call(None, Read(1, LAST_ENTRY, previous_lac=0, timeout_ms=timeout_ms))


async def test_a_poll_is_over_once_by_the_lac_or_by_its_time(served):
    over = []
    polls = long_polls.LongPolls(served.services, over.append)
    async with served.dial() as peer:
        await peer.ask(add(1, 0))
        first, second = poll(60_000), poll(60_000)
        assert polls.wait(first)
        assert polls.wait(second)
        assert len(served.services.deadlines) == 2
        await peer.ask(add(1, 1, lac=0), add(1, 2, lac=1))
        assert over == [first, second]
        assert len(served.services.deadlines) == 0
        third = poll(1)
        assert polls.wait(third)
        while len(over) < 3:
            await trio.lowlevel.checkpoint()
        assert over[2] is third
        assert polls.wait(poll(60_000))
        polls.close()
        assert len(served.services.deadlines) == 0
        assert len(over) == 3


async def test_one_connection_leaves_places_for_others(served):
    polls = long_polls.LongPolls(served.services, lambda call: None)
    count = 0
    while polls.wait(poll(60_000)):
        count += 1
    assert count == WAITERS_MAX // 8
    other = long_polls.LongPolls(served.services, lambda call: None)
    assert other.wait(poll(60_000))
    other.close()
    polls.close()
    assert len(served.ledgers.waiters) == 0
