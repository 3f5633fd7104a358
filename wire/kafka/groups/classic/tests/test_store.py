"""Members are written one after the other, and what is newer goes before what is older."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from magnetar.core.cluster.ownership import AloneHere, OwnershipTable, Peer
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, NotCoordinator, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.testing.metadata import overwrite
from magnetar.wire.kafka.groups.classic.group_record import AnyStoredGroup, StoredGroup, encode
from magnetar.wire.kafka.groups.classic.store import MEMBERS, MemberStore


class Gate(MemoryMetadata):
    """Writes wait until it is open, and fail if it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = trio.Event()
        self.entered = trio.Event()
        self.writes = 0
        self.fails = False

    async def put(self, path: str, value: bytes, expected: int) -> int:
        self.entered.set()
        await self.opened.wait()
        self.writes += 1
        if self.fails:
            raise StorageFailed("for now")
        return await super().put(path, value, expected)


def kept(generation: int) -> StoredGroup:
    return StoredGroup(generation, "consumer", "range", "m", ())


@pytest.fixture
async def gate() -> Gate:
    return Gate()


@pytest.fixture
async def member_store(gate: Gate) -> AsyncIterator[MemberStore]:
    async with trio.open_nursery() as nursery:
        member_store = MemberStore(gate, AloneHere())
        nursery.start_soon(member_store.run)
        yield member_store
        nursery.cancel_scope.cancel()


def keep(member_store: MemberStore, group: str, kept: StoredGroup | None) -> Completion[None]:
    waiting = Completion[None]()
    member_store.keep(group, kept, waiting.done)
    return waiting


async def stored(gate: Gate) -> dict[str, AnyStoredGroup | None]:
    """What another member_store finds, as after a restart."""
    other = MemberStore(gate, AloneHere())
    return {name: await other.claim(name) for name in await other.names()}


async def test_what_is_kept_is_there_after_a_restart(gate: Gate, member_store: MemberStore) -> None:
    gate.opened.set()
    await keep(member_store, "a/b", kept(1)).result()
    await keep(member_store, "g", kept(2)).result()
    await keep(member_store, "other", kept(3)).result()
    await member_store.forget("a/b")
    await member_store.forget("a/b")
    await member_store.forget("never there")
    assert await stored(gate) == {"g": kept(2), "other": kept(3)}


async def test_whoever_claims_a_group_fences_its_former_coordinator(
    gate: Gate, member_store: MemberStore
) -> None:
    gate.opened.set()
    await keep(member_store, "g", kept(1)).result()
    assert await member_store.claim("g") is None, "it is held here"
    assert await stored(gate) == {"g": kept(1)}
    with pytest.raises(NotCoordinator):
        await keep(member_store, "g", kept(2)).result()
    assert await member_store.claim("g") == kept(1), "not held any more, so it may be taken back"
    await keep(member_store, "g", kept(3)).result()
    assert await stored(gate) == {"g": kept(3)}


async def test_of_two_who_store_a_new_group_the_first_one_wins(
    gate: Gate, member_store: MemberStore
) -> None:
    gate.opened.set()
    await overwrite(gate, f"{MEMBERS}/g", encode(kept(7)))
    with pytest.raises(NotCoordinator):
        await keep(member_store, "g", kept(1)).result()
    assert await stored(gate) == {"g": kept(7)}


async def test_a_group_of_another_broker_is_not_touched(gate: Gate) -> None:
    gate.opened.set()
    await overwrite(gate, f"{MEMBERS}/g", encode(kept(7)))
    peer = Peer(1)
    table = OwnershipTable(peer)
    table.groups["g"] = peer
    member_store = MemberStore(gate, table)
    assert await member_store.names() == []
    with pytest.raises(NotCoordinator):
        await member_store.claim("g")
    assert await gate.get(f"{MEMBERS}/g") == Versioned(encode(kept(7)), 0)


async def test_of_what_waits_only_the_newest_is_written(
    gate: Gate, member_store: MemberStore
) -> None:
    results: list[BrokerError | None] = []
    member_store.keep("g", kept(1), results.append)
    await gate.entered.wait()
    member_store.keep("g", kept(2), results.append)
    last = keep(member_store, "g", kept(3))
    assert results == []
    gate.opened.set()
    await last.result()
    assert (results, gate.writes) == ([None, None], 2)
    assert await stored(gate) == {"g": kept(3)}


async def test_a_deletion_comes_after_what_was_asked_for_before(
    gate: Gate, member_store: MemberStore
) -> None:
    first = keep(member_store, "g", kept(1))
    await gate.entered.wait()
    gone = keep(member_store, "g", None)
    gate.opened.set()
    await gone.result()
    await first.result()
    assert await gate.children(MEMBERS) == []


async def test_who_asked_hears_what_went_wrong(gate: Gate, member_store: MemberStore) -> None:
    gate.opened.set()
    gate.fails = True
    with pytest.raises(StorageFailed):
        await keep(member_store, "g", kept(1)).result()
    gate.fails = False
    await keep(member_store, "g", kept(1)).result()
    assert await stored(gate) == {"g": kept(1)}


async def claimed_by_another(gate: Gate) -> MemberStore:
    other = MemberStore(gate, AloneHere())
    assert await other.claim("g") is not None
    return other


async def test_a_fenced_coordinator_deletes_nothing(gate: Gate, member_store: MemberStore) -> None:
    """Its write is under way when its last member leaves; another one has the group by then."""
    gate.opened.set()
    await keep(member_store, "g", kept(1)).result()
    await claimed_by_another(gate)
    gate.opened, gate.entered = trio.Event(), trio.Event()
    first = keep(member_store, "g", kept(2))
    await gate.entered.wait()
    last = keep(member_store, "g", None)
    gate.opened.set()
    for waiting in (first, last):
        with pytest.raises(NotCoordinator):
            await waiting.result()
    assert await stored(gate) == {"g": kept(1)}


async def test_what_was_released_is_neither_written_nor_deleted(
    gate: Gate, member_store: MemberStore
) -> None:
    gate.opened.set()
    await keep(member_store, "g", kept(1)).result()
    other = await claimed_by_another(gate)
    waiting = keep(member_store, "g", kept(2))
    member_store.release("g")
    with pytest.raises(NotCoordinator):
        await waiting.result()
    await member_store.forget("g")
    assert await stored(gate) == {"g": kept(1)}
    other.release("g")
