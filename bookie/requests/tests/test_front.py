"""The front's listener: a connection beyond the link's limit is closed."""

import pytest

from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie.rpc.messages import Status
from magnetar.core.link.limits import LinkLimits


async def test_a_connection_beyond_the_limit(disk):
    limits = LinkLimits(connections_max=1)
    async with serving(disk, link_limits=limits) as served, served.dial() as first:
        assert (await first.ask(add(1, 0))).status is Status.OK
        async with served.dial() as second:
            with pytest.raises((EOFError, OSError)):
                await second.ask(add(1, 1))
        assert (await first.ask(add(1, 1))).status is Status.OK
