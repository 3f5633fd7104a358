"""What the link has the broker and its storage do, and when."""

import pytest

from magnetar.core.link.backend import NO_BACKEND
from magnetar.core.link.tests.echo import receive_exactly, running


async def test_the_backend_works_at_the_end_of_each_sweep() -> None:
    async with running() as bench, await bench.dial() as stream:
        await stream.send_all(b"a\n")
        await receive_exactly(stream, 2)
        assert bench.backend.steps[:4] == ["begin_group", "dispatch", "store", "flush_group"]
        assert bench.backend.steps[-4:] == bench.backend.steps[:4]
        with pytest.raises(AssertionError, match="one backend"):
            bench.link.serve(bench.backend, bench.backend)


def test_without_a_backend_storage_is_never_behind() -> None:
    assert not NO_BACKEND.congested
