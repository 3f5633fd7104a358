"""The fake keeps the contract of the port: what tests rely on is what storage does."""

import pytest
import trio
import trio.testing

from magnetar.core.kernel.errors import StorageFailed, StorageFull

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_ledger_store")

from magnetar.core.ports.tests import contract_ledger_store as contract  # noqa: E402 (after the rewrite)
from magnetar.core.testing.ledgers import MemoryLedgers  # noqa: E402


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_contract(check: contract.Check) -> None:
    await check(MemoryLedgers())


async def test_nothing_is_stored_before_a_test_says_so() -> None:
    store = MemoryLedgers(sync_at_once=False)
    writer, outcome = await store.create({}), contract.Outcome()
    writer.append([b"x"], outcome)
    await trio.testing.wait_all_tasks_blocked()
    assert (outcome.results, writer.last_confirmed) == ([], -1)
    store.sync()
    assert (outcome.results, writer.last_confirmed) == ([None], 0)


async def test_a_failure_takes_what_was_not_stored_and_all_that_comes() -> None:
    store = MemoryLedgers(sync_at_once=False)
    writer = await store.create({})
    first, second = contract.Outcome(), contract.Outcome()
    writer.append([b"lost"], first)
    writer.fail(StorageFailed("the disk is gone"))
    writer.append([b"late"], second)
    for outcome in (first, second):
        (error,) = await outcome.wait()
        assert isinstance(error, StorageFailed)
    assert (writer.entries, writer.last_confirmed) == ([], -1)


async def test_full_until_a_test_makes_room() -> None:
    store = MemoryLedgers()
    writer, refused = await store.create({}), contract.Outcome()
    store.full = True
    assert not store.writable()
    writer.append([b"x"], refused)
    (error,) = await refused.wait()
    assert isinstance(error, StorageFull)
    store.full = False
    assert await contract.append(await store.create({}), b"y") == 0


async def test_no_more_ledgers() -> None:
    store = MemoryLedgers()
    store.create_failure = StorageFailed("no")
    with pytest.raises(StorageFailed):
        await store.create({})
