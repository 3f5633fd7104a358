"""Clients that do not receive what they asked for, and Apache's two ways to deal with them."""

import pytest
import trio

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie.rpc.messages import Read, Status
from magnetar.core.link.limits import LinkLimits

SMALL = LinkLimits(outbox_high_bytes=64 * 1024)
MUCH = [Read(1, 0)] * 100
"""Of a megabyte each: more than any system buffers for one connection."""


async def until(condition) -> None:
    with trio.fail_after(20):
        while not condition():
            await trio.lowlevel.checkpoint()


async def hear_all(peer) -> None:
    for _ in MUCH:
        assert (await peer.hear()).status is Status.OK


async def test_reads_of_one_that_does_not_receive_are_dropped_and_later_ones_answered(disk):
    limits = RequestLimits(wait_timeout_on_response_backpressure_ms=20)
    async with serving(disk, limits=limits, link_limits=SMALL) as served, served.dial() as peer:
        await peer.ask(add(1, 0, b"z" * 1_000_000))
        await peer.say(*MUCH)
        await until(lambda: served.services.counters.reads_dropped)
        assert served.services.reads.count == 0
        heard = 100 - served.services.counters.reads_dropped
        for _ in range(heard):
            assert (await peer.hear()).status is Status.OK
        assert (await peer.ask(add(1, 1, b"small"))).status is Status.OK
        assert (await peer.ask(Read(1, 1))).status is Status.OK, "it receives again"


async def test_one_that_does_not_receive_is_closed_if_that_is_asked_for(disk):
    limits = RequestLimits(
        wait_timeout_on_response_backpressure_ms=20, close_channel_on_response_timeout=True
    )
    async with serving(disk, limits=limits, link_limits=SMALL) as served, served.dial() as peer:
        await peer.ask(add(1, 0, b"z" * 1_000_000))
        await peer.say(*MUCH)
        await until(lambda: not served.link._connections)
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await hear_all(peer)


async def test_usually_they_wait(disk):
    async with serving(disk, link_limits=SMALL) as served, served.dial() as peer:
        await peer.ask(add(1, 0, b"z" * 1_000_000))
        await peer.say(*MUCH)
        await until(lambda: served.services.reads.count > 50)
        await hear_all(peer)
        assert served.services.counters.reads_dropped == 0
