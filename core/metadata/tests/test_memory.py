from collections.abc import Awaitable, Callable

import pytest

from magnetar.core.metadata.memory import MemoryMetadata

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_metadata_store")

from magnetar.core.ports.tests import contract_metadata_store as contract  # noqa: E402 (after the rewrite)


@pytest.mark.parametrize(
    "check", contract.CHECKS + contract.TREE_CHECKS, ids=lambda check: check.__name__
)
async def test_contract(check: contract.Check) -> None:
    await check(MemoryMetadata())


@pytest.mark.parametrize("check", contract.LEASE_CHECKS, ids=lambda check: check.__name__)
async def test_contract_of_leases(check: Callable[[contract.Expiring], Awaitable[None]]) -> None:
    await check(MemoryMetadata())
