"""Records of one kind: what a broker owns, what it learns of a new owner, what it only reads."""

from __future__ import annotations

import pytest

from magnetar.core.cluster.owned_records import OwnedRecords, RecordKind
from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.cluster.tests.test_owned_record import Flaky
from magnetar.core.kernel.errors import Corrupted, NotCoordinator, StorageFailed
from magnetar.core.testing.metadata import overwrite


def decode(data: bytes) -> str:
    return data.decode()


KIND = RecordKind("group", "/groups", str.encode, decode)


@pytest.fixture
def store() -> Flaky:
    return Flaky()


@pytest.fixture
def table() -> OwnershipTable:
    return OwnershipTable()


def records_in(store: Flaky, table: OwnershipTable) -> OwnedRecords[str]:
    return OwnedRecords(store, KIND, table.group)


async def write(records: OwnedRecords[str], value: str, name: str = "a/b") -> None:
    await records.write(name, await records.claim(name), value)


async def test_from_the_first_claim_to_the_deletion(store: Flaky, table: OwnershipTable) -> None:
    records = records_in(store, table)
    record = await records.claim("a/b")
    assert (record.value, records.get("a/b")) == (None, None), "there is nothing to own yet"
    await records.write("a/b", record, "one")
    assert records.get("a/b") is record is await records.claim("a/b")
    assert (records.value_of("a/b"), await records.find("a/b")) == ("one", "one")
    assert await records.names() == ["a/b"]
    await records.delete("a/b", record)
    assert (records.get("a/b"), await records.find("a/b")) == (None, None)
    assert await records.names() == []


async def test_a_claim_fences_the_former_owner(store: Flaky, table: OwnershipTable) -> None:
    ours, theirs = records_in(store, table), records_in(store, table)
    await write(ours, "ours")
    await ours.verify("a/b")
    assert (await theirs.claim("a/b")).value == "ours"
    with pytest.raises(NotCoordinator, match="coordinates group a/b"):
        await ours.verify("a/b")
    assert ours.get("a/b") is None
    await write(theirs, "theirs")
    assert await ours.find("a/b") == "theirs"


@pytest.mark.parametrize("call", ["write", "delete"])
async def test_a_former_owner_changes_nothing(
    store: Flaky, table: OwnershipTable, call: str
) -> None:
    ours, theirs = records_in(store, table), records_in(store, table)
    await write(ours, "ours")
    record = await ours.claim("a/b")
    await write(theirs, "theirs")
    with pytest.raises(NotCoordinator):
        await (ours.write("a/b", record, "late") if call == "write" else ours.delete("a/b", record))
    assert ours.get("a/b") is None
    assert await ours.find("a/b") == "theirs"


async def test_a_name_of_another_broker_is_not_claimed(store: Flaky, table: OwnershipTable) -> None:
    records = records_in(store, table)
    table.groups["a/b"] = Peer(1)
    assert not await records.is_ours("a/b")
    writes = store.writes
    with pytest.raises(NotCoordinator):
        await records.claim("a/b")
    assert store.writes == writes


@pytest.mark.parametrize(("breaks", "value"), [("before", "one"), ("after", "two")])
async def test_a_write_of_unknown_outcome_is_settled_by_the_next_claim(
    store: Flaky, table: OwnershipTable, breaks: str, value: str
) -> None:
    records = records_in(store, table)
    await write(records, "one")
    store.breaks = breaks
    with pytest.raises(StorageFailed):
        await write(records, "two")
    assert records.value_of("a/b") is None, "nothing is certain"
    assert records.get("a/b") is not None
    assert await records.find("a/b") == value
    assert (await records.claim("a/b")).value == value
    assert records.value_of("a/b") == value


async def test_a_first_write_that_did_not_happen_leaves_nothing(
    store: Flaky, table: OwnershipTable
) -> None:
    records = records_in(store, table)
    store.breaks = "before"
    with pytest.raises(StorageFailed):
        await write(records, "one")
    assert (await records.claim("a/b")).value is None
    assert records.get("a/b") is None


async def test_a_record_that_cannot_be_read_says_whose_it_is(
    store: Flaky, table: OwnershipTable
) -> None:
    records = records_in(store, table)
    await overwrite(store, "/groups/a%2Fb", b"\xff")
    with pytest.raises(Corrupted, match="group a/b"):
        await records.find("a/b")
    with pytest.raises(Corrupted):
        await records.claim("a/b")


async def test_only_a_record_that_cannot_be_read_is_discarded(
    store: Flaky, table: OwnershipTable
) -> None:
    records = records_in(store, table)
    assert not await records.discard_damaged("a/b"), "there is none"
    await write(records, "value")
    assert not await records.discard_damaged("a/b")
    await overwrite(store, "/groups/a%2Fb", b"\xff")
    assert await records.discard_damaged("a/b")
    assert await records.names() == []
    table.groups["a/b"] = Peer(7)
    await overwrite(store, "/groups/a%2Fb", b"\xff")
    with pytest.raises(NotCoordinator):
        await records.discard_damaged("a/b")
