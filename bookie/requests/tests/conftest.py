"""A bookie on a disk in memory that serves on a loopback port."""

import pytest

from magnetar.bookie.requests.tests.peers import serving
from magnetar.core.link.conftest import tls_contexts  # noqa: F401 -- a fixture of these tests too
from magnetar.core.testing.memory_disk import MemoryDisk


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
async def served(disk):
    async with serving(disk) as one:
        yield one
