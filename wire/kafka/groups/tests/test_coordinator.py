"""Groups come into being, are noted, forgotten, and waited for after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from magnetar.core.cluster.ownership import OwnershipTable
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.bench import settled
from magnetar.core.testing.clock import FixedClock
from magnetar.core.testing.metadata import overwrite
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.errors import KafkaRefusal
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.member import Joined, Joining, Synced, Syncing
from magnetar.wire.kafka.groups.classic.store import MEMBERS, MemberStore
from magnetar.wire.kafka.groups.consumer.heartbeat import Heartbeat
from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
from magnetar.wire.kafka.groups.group_configs import GroupConfigs
from magnetar.wire.kafka.groups.group_records import GroupRecord, GroupRecords
from magnetar.wire.kafka.groups.memory_budget import GroupMemory
from magnetar.wire.kafka.groups.options import GroupOptions


class Desk:
    """A server's groups; what is stored outlives it."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.metadata = MemoryMetadata()
        self.ownership = OwnershipTable()
        self.clock = FixedClock()
        self.emptied: list[str] = []
        self.nursery = nursery
        self.make()

    def make(self) -> None:
        self.records = GroupRecords(self.metadata)
        self.member_store = MemberStore(self.metadata, self.ownership)
        self.nursery.start_soon(self.member_store.run)
        self.group_configs = GroupConfigs(self.metadata, GroupOptions())
        self.groups = GroupCoordinator(
            self.clock,
            self.group_configs.options,
            self.records,
            self.member_store,
            self.group_configs,
            self._emptied,
        )

    async def restart(self) -> None:
        self.make()
        await self.group_configs.open()
        await self.groups.open()

    async def _emptied(self, group: str) -> None:
        self.emptied.append(group)

    async def join(self, group: str = "g", member: str = "", client: str = "c") -> list[Joined]:
        results: list[Joined] = []
        request = Joining(
            member_id=member,
            instance_id=None,
            client_id=client,
            host="/h",
            session_seconds=10.0,
            rebalance_seconds=20.0,
            protocol_type="consumer",
            protocols=(("range", b""),),
            id_required=False,
        )
        self.groups.join(group, request, results.append)
        await settled()
        return results

    async def tell(self, member: Joined, task: bytes = b"all") -> None:
        """The member leads, and is alone."""
        results = Completion[Synced]()
        request = Syncing(member.member_id, member.generation, assignments={member.member_id: task})
        self.group.sync(request, self.groups.now(), results.done)
        assert (await results.result()).assignment == task

    @property
    def group(self) -> Group:
        found = self.groups.find("g")
        assert found is not None
        return found

    async def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)
        for _ in range(3):
            await self.groups.tick()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with trio.open_nursery() as nursery:
        yield Desk(nursery)
        nursery.cancel_scope.cancel()


async def test_from_the_first_member_to_the_last(desk: Desk) -> None:
    (first,) = await desk.join()
    await desk.records.ensure("g", desk.groups.record_of("g"))
    assert await desk.records.find("g") == GroupRecord("classic", "consumer", 0)
    await desk.wait(1)
    await desk.wait(20)
    assert desk.groups.all() == []
    assert desk.emptied == ["g"]
    record = await desk.records.find("g")
    assert record is not None
    assert record.empty_since_ms == desk.clock.wall_ms()
    (again,) = await desk.join(member=first.member_id)
    assert again.error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.groups.all() == []
    await desk.join()
    await desk.wait(1)
    assert await desk.records.find("g") == GroupRecord("classic", "consumer", 0)


async def test_a_record_that_cannot_be_written_is_written_later(desk: Desk) -> None:
    await desk.join()
    await desk.wait(1)
    await desk.records.ensure("g", desk.groups.record_of("g"))

    async def fails(*_: object) -> int:
        raise StorageFailed("for now")

    put, desk.metadata.put = desk.metadata.put, fails
    await desk.wait(20)
    assert len(desk.groups.all()) == 1
    desk.metadata.put = put
    await desk.wait(1)
    assert desk.groups.all() == []
    record = await desk.records.find("g")
    assert record is not None
    assert record.empty_since_ms


async def test_members_go_on_after_a_restart(desk: Desk) -> None:
    (first,) = await desk.join()
    await desk.tell(first)
    await desk.restart()
    assert desk.groups.in_use("g")
    beat = desk.group.heartbeat(first.member_id, first.generation, None, desk.groups.now())
    assert beat == errors.NONE
    await desk.records.ensure("g", desk.groups.record_of("g"))
    await desk.wait(11)
    assert desk.groups.all() == []
    assert desk.emptied == ["g"], "it has been silent since"
    await settled()
    await desk.restart()
    assert desk.groups.all() == []


async def test_a_round_that_was_not_over_is_forgotten(desk: Desk) -> None:
    await desk.join()
    await desk.restart()
    assert desk.groups.all() == []
    (first,) = await desk.join()
    assert first.generation == 1


async def test_a_group_of_the_newer_protocol_takes_the_place_of_an_empty_one(desk: Desk) -> None:
    (first,) = await desk.join()
    await desk.tell(first)
    assert desk.group.leave(first.member_id, None, desk.groups.now()) == errors.NONE
    await desk.groups.expect_consumers("g")
    group = desk.groups.made_consumer("g")
    beat = Heartbeat("m", 0, rebalance_seconds=1.0, names=frozenset("t"), owned=frozenset())
    group.heartbeat(beat, desk.groups.now())
    await desk.groups.keep(group)
    await desk.restart()
    after = desk.groups.consumer("g")
    assert after is not None
    assert list(after.members) == ["m"]


async def test_members_of_the_newer_protocol_go_on_after_a_restart(desk: Desk) -> None:
    await desk.groups.expect_consumers("g")
    group = desk.groups.made_consumer("g")
    beat = Heartbeat("m", 0, rebalance_seconds=1.0, names=frozenset("t"), owned=frozenset())
    results = group.heartbeat(beat, desk.groups.now())
    await desk.groups.keep(group)
    await desk.restart()
    after = desk.groups.consumer("g")
    assert after is not None
    again = after.heartbeat(Heartbeat("m", results.epoch), desk.groups.now())
    assert (again.error_code, again.epoch) == (errors.NONE, results.epoch)
    await desk.wait(46)
    assert desk.groups.all() == []
    await settled()
    await desk.restart()
    assert desk.groups.all() == [], "who was silent is not kept either"


async def test_nobody_is_told_what_cannot_be_kept(desk: Desk) -> None:
    await desk.groups.expect_consumers("g")
    group = desk.groups.made_consumer("g")

    async def fails(*_: object) -> int:
        raise StorageFailed("for now")

    put, desk.metadata.put = desk.metadata.put, fails
    beat = Heartbeat("m", 0, rebalance_seconds=1.0, names=frozenset("t"), owned=frozenset())
    group.heartbeat(beat, desk.groups.now())
    with pytest.raises(StorageFailed):
        await desk.groups.keep(group)
    assert group.dirty
    desk.metadata.put = put
    await desk.groups.keep(group)
    assert not group.dirty


async def test_everybody_waits_for_what_is_on_its_way(desk: Desk) -> None:
    await desk.groups.expect_consumers("g")
    group = desk.groups.made_consumer("g")
    opened, results = trio.Event(), []
    put = desk.metadata.put

    async def waits(*args: object) -> int:
        await opened.wait()
        return await put(*args)

    async def keep(name: str) -> None:
        await desk.groups.keep(group)
        results.append(name)

    desk.metadata.put = waits
    beat = Heartbeat("m", 0, rebalance_seconds=1.0, names=frozenset("t"), owned=frozenset())
    group.heartbeat(beat, desk.groups.now())
    desk.nursery.start_soon(keep, "first")
    await settled()
    desk.nursery.start_soon(keep, "again")
    await settled()
    assert results == []
    opened.set()
    await settled()
    assert sorted(results) == ["again", "first"]


async def test_room(desk: Desk) -> None:
    desk.groups._memory = GroupMemory(10_000)
    (results,) = await desk.join("g" * 3_000)
    assert results.error_code == errors.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaRefusal):
        await desk.groups.expect_consumers("g" * 3_000)
    with pytest.raises(KafkaRefusal):
        desk.groups.made_consumer("g" * 3_000)
    (results,) = await desk.join(client="c" * 10_000)
    assert results.error_code == errors.COORDINATOR_NOT_AVAILABLE
    await desk.wait(1)
    assert desk.groups.all() == []
    assert desk.groups._memory.used_bytes == 0


async def test_kinds(desk: Desk) -> None:
    await desk.groups.expect_consumers("g")
    group = desk.groups.made_consumer("g")
    beat = Heartbeat("m", 0, rebalance_seconds=1.0, names=frozenset("t"), owned=frozenset())
    assert group.heartbeat(beat, desk.groups.now()).error_code == errors.NONE
    assert desk.groups.find("g") is None
    assert desk.groups.subscribed_topics("g") == {"t"}
    assert desk.groups.record_of("g") == GroupRecord("consumer", "consumer")
    (results,) = await desk.join()
    assert results.error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    with pytest.raises(KafkaRefusal):
        desk.groups.made_consumer("g")
    group.remove(*group.members.values())
    (results,) = await desk.join()
    assert results.error_code == errors.NONE
    assert desk.groups.consumer("g") is None
    with pytest.raises(KafkaRefusal):
        desk.groups.made_consumer("g")


async def test_the_clock_goes_by_itself(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.groups.run)
        await trio.sleep(1)
        await desk.join()
        desk.clock.forward(30)
        await trio.sleep(1)
        assert desk.groups.all() == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff\xfe\0"])
async def test_members_that_cannot_be_read_fail_their_group_alone(desk: Desk, data: bytes) -> None:
    await overwrite(desk.metadata, f"{MEMBERS}/damaged", data)
    await desk.restart()
    with pytest.raises(Corrupted, match="damaged cannot be read"):
        await desk.groups.ready("damaged")
    await desk.groups.ready("another")
