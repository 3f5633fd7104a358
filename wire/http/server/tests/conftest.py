"""A visitor for every test that wants one."""

from collections.abc import AsyncIterator

import pytest

from magnetar.wire.http.tests.visitor import Visitor, visiting


@pytest.fixture
async def visitor() -> AsyncIterator[Visitor]:
    async with visiting() as made:
        yield made
