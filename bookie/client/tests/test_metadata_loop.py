"""Ledger metadata changes from the value that was read, or not at all."""

import pytest

from magnetar.bookie.client import metadata_loop
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Corrupted, LedgerNotFound
from magnetar.core.ports.metadata_store import ABSENT


async def stored(store, ledger_id, **changed):
    fresh = ledger_metadata.fresh(("a",), (1, 1), {}, 0, 0)
    for name, value in changed.items():
        setattr(fresh, name, value)
    path = ledger_metadata.path_of(ledger_id)
    await store.put(path, ledger_metadata.encode(fresh), ABSENT)


def close(last):
    def transform(ledger):
        if ledger.state == ledger_metadata.CLOSED:
            return False
        ledger.state, ledger.lastEntryId = ledger_metadata.CLOSED, last
        return True

    return transform


async def test_a_change_is_written_over_the_version_that_was_read():
    store = DictMetadata()
    await stored(store, 4)
    changed = await metadata_loop.change(store, 4, close(7))
    assert (changed.state, changed.lastEntryId) == (ledger_metadata.CLOSED, 7)
    assert await metadata_loop.read(store, 4) == changed
    assert (await store.get(ledger_metadata.path_of(4))).version == 1


async def test_nothing_to_change_writes_nothing():
    store = DictMetadata()
    await stored(store, 4, state=ledger_metadata.CLOSED, lastEntryId=3)
    assert (await metadata_loop.change(store, 4, close(7))).lastEntryId == 3
    assert (await store.get(ledger_metadata.path_of(4))).version == 0


@pytest.mark.parametrize("form", [1, 2, 3])
async def test_a_change_keeps_the_version_of_the_format(form):
    """A client that knows no newer one may have to read the ledger."""
    store = DictMetadata()
    path = ledger_metadata.path_of(4)
    fresh = ledger_metadata.fresh(("a", "b"), (2, 1), {}, 0, 0)
    await store.put(path, ledger_metadata.encode(fresh, form), ABSENT)
    await metadata_loop.change(store, 4, close(7))
    found, kept = ledger_metadata.decode((await store.get(path)).value)
    assert (kept, found.state, found.lastEntryId) == (form, ledger_metadata.CLOSED, 7)


async def test_of_two_who_change_at_once_the_second_decides_again():
    store = DictMetadata()
    await stored(store, 4)
    seen = []
    put = store.put

    async def put_after_another(path, value, expected=None):
        store.put = put
        await metadata_loop.change(store, 4, close(5))
        return await put(path, value, expected)

    store.put = put_after_another

    def transform(ledger):
        seen.append(ledger.state)
        return close(7)(ledger)

    assert (await metadata_loop.change(store, 4, transform)).lastEntryId == 5
    assert seen == [ledger_metadata.OPEN, ledger_metadata.CLOSED]


async def test_a_change_that_refuses_leaves_what_is_there():
    store = DictMetadata()
    await stored(store, 4)

    def refuse(ledger):
        ledger.state = ledger_metadata.CLOSED
        raise Corrupted("no")

    with pytest.raises(Corrupted):
        await metadata_loop.change(store, 4, refuse)
    assert (await metadata_loop.read(store, 4)).state == ledger_metadata.OPEN


async def test_a_ledger_that_is_not_named_is_not_found():
    store = DictMetadata()
    with pytest.raises(LedgerNotFound):
        await metadata_loop.read(store, 4)
    with pytest.raises(LedgerNotFound):
        await metadata_loop.change(store, 4, close(7))


async def test_all_ledgers_are_listed_with_their_ends():
    store = DictMetadata()
    await stored(store, 4)
    await stored(store, 12_345, state=ledger_metadata.CLOSED, lastEntryId=9)
    await stored(store, 2**40, state=ledger_metadata.CLOSED, lastEntryId=0)
    await store.put(ledger_metadata.path_of(7), b"noise", ABSENT)
    for path in (ledger_metadata.INSTANCE_ID, ledger_metadata.LAYOUT, "/ledgers/cookies/embedded"):
        await store.put(path, b"no ledger", ABSENT)
    assert await metadata_loop.last_entries(store) == {4: -1, 12_345: 9, 2**40: 0, 7: -1}
    assert await metadata_loop.last_entries(DictMetadata()) == {}
