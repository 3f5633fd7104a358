"""The workbench under a topic, with storage that confirms at once, or when it is told to."""

from collections.abc import AsyncIterator

import pytest

from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.testing.bench import Bench, bench


@pytest.fixture
async def desk() -> AsyncIterator[Bench]:
    """Ledgers of ten entries."""
    async with bench(RollLimits(entries_max=10, age_ms_min=0)) as made:
        yield made


@pytest.fixture
async def slow_desk() -> AsyncIterator[Bench]:
    """Storage confirms when told to."""
    async with bench(RollLimits(entries_max=10, age_ms_min=0), sync_at_once=False) as made:
        yield made
