"""The workbench under a topic, with storage that confirms at once."""

from collections.abc import AsyncIterator

import pytest

from core.ledger.trim import RollLimits
from core.testing.bench import Bench, bench


@pytest.fixture
async def desk() -> AsyncIterator[Bench]:
    """Ledgers of ten entries."""
    async with bench(RollLimits(entries_max=10, age_ms_min=0)) as made:
        yield made
