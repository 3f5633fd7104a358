"""What a front's listener decides: how a connection too many is refused."""

import pytest
import trio
import trio.testing

from magnetar.core.link.front import Refusal
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.tests.echo import receive_end, receive_exactly, running


@pytest.mark.parametrize(
    "limits",
    [LinkLimits(connections_max=1), LinkLimits(connections_per_address_max=1)],
    ids=["in all", "per address"],
)
async def test_one_connection_too_many_is_closed(limits: LinkLimits) -> None:
    async with running(limits) as bench, await bench.dial() as first:
        await first.send_all(b"a\n")
        await receive_exactly(first, 2)
        async with await bench.dial() as second:
            assert await receive_end(second) == b""
        assert bench.link.statistics().refused == 1
        await first.aclose()
        await trio.testing.wait_all_tasks_blocked(0.05)
        async with await bench.dial() as third:
            await third.send_all(b"c\n")
            assert await receive_exactly(third, 2) == b"c\n"


async def test_one_connection_too_many_hears_why_where_the_protocol_can_say_it() -> None:
    limits = LinkLimits(connections_max=1)
    async with running(limits, refusal=Refusal.EXPLAINED) as bench, await bench.dial() as first:
        await first.send_all(b"a\n")
        await receive_exactly(first, 2)
        async with await bench.dial() as second:
            await second.send_all(b"hello\n")
            assert await receive_end(second) == b"the server has its maximum of 1 connections\n"
        await first.send_all(b"b\n")  # whoever is in is not disturbed
        assert await receive_exactly(first, 2) == b"b\n"
        await first.aclose()
        await trio.testing.wait_all_tasks_blocked(0.05)
        async with await bench.dial() as third:
            await third.send_all(b"c\n")
            assert await receive_exactly(third, 2) == b"c\n"


async def test_refused_peers_that_say_nothing_are_few_and_do_not_stay() -> None:
    """The oldest goes for the next, and time ends the rest; none of them counts as a connection."""
    limits = LinkLimits(connections_per_address_max=1, refusals_max=2, refusal_seconds=0.2)
    async with running(limits, refusal=Refusal.EXPLAINED) as bench, await bench.dial() as first:
        await first.send_all(b"a\n")
        await receive_exactly(first, 2)
        silent = [await bench.dial() for _ in range(5)]
        for one in silent:
            assert await receive_end(one) == b""
            await one.aclose()
        assert bench.link.statistics().refused == 5
        assert bench.link.statistics().connections == 1
        await first.send_all(b"b\n")
        assert await receive_exactly(first, 2) == b"b\n"
