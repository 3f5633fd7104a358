"""The front's listener: a connection beyond the link's limit is closed. And who hears whether the
bookie takes writes.
"""

from types import SimpleNamespace

import pytest
import trio

from magnetar.bookie.requests.front import BookieFront
from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie.rpc.messages import Status
from magnetar.core.link.limits import LinkLimits


async def test_a_connection_beyond_the_limit(disk):
    limits = LinkLimits(connections_max=1)
    async with serving(disk, link_limits=limits) as served, served.dial() as first:
        assert (await first.ask(add(1, 0))).status is Status.OK
        async with served.dial() as second:
            with pytest.raises((EOFError, OSError, trio.BrokenResourceError)):
                await second.ask(add(1, 1))
        assert (await first.ask(add(1, 1))).status is Status.OK


async def test_whether_it_takes_writes_is_told_at_first_and_when_it_changes(autojump_clock):
    ledgers, told = SimpleNamespace(writable=True), []
    front = BookieFront(SimpleNamespace(ledgers=ledgers))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(front.tell_mode, told.append, 1.0)
        await trio.sleep(0.5)  # always between two looks
        for writable in (True, False, False, True):
            ledgers.writable = writable
            await trio.sleep(1.0)
        nursery.cancel_scope.cancel()
    assert told == [False, True, False]
