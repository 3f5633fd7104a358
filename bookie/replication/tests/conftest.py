"""A cluster of four bookies in this process."""

import pytest

from magnetar.bookie.client.quorum.tests.bookies import local_cluster


@pytest.fixture
async def cluster(tmp_path):
    async with local_cluster(tmp_path, 4) as made:
        yield made
