"""The workbench of logs, with storage that confirms at once."""

from collections.abc import AsyncIterator

import pytest

from magnetar.core.testing.bench import Bench, bench


@pytest.fixture
async def desk() -> AsyncIterator[Bench]:
    """Ledgers of three entries."""
    async with bench() as made:
        yield made
