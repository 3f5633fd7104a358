"""Groups come into being, are noted, forgotten, and waited for after a restart."""

from __future__ import annotations

import pytest
import trio

from core.errors import StorageFailed
from core.metadata.memory import MemoryMetadata
from core.testing.clock import FixedClock
from wire.kafka import errors
from wire.kafka.errors import Refused
from wire.kafka.groups.consumer.words import Beat
from wire.kafka.groups.coordinator import Groups
from wire.kafka.groups.member import Joined, Joining
from wire.kafka.groups.options import GroupOptions
from wire.kafka.groups.records import Record, Records
from wire.kafka.groups.room import Room


class Desk:
    """A server's groups; what is stored outlives it."""

    def __init__(self) -> None:
        self.metadata = MemoryMetadata()
        self.clock = FixedClock()
        self.emptied: list[str] = []
        self.start()

    def start(self) -> None:
        self.records = Records(self.metadata)
        self.groups = Groups(self.clock, GroupOptions(), self.records, self._emptied)

    async def _emptied(self, group: str) -> None:
        self.emptied.append(group)

    async def join(self, group: str = "g", member: str = "", client: str = "c") -> list[Joined]:
        told: list[Joined] = []
        await self.groups.expect(group)
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
        self.groups.join(group, request, told.append)
        return told

    async def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)
        for _ in range(3):
            await self.groups.tick()


async def test_from_the_first_member_to_the_last() -> None:
    desk = Desk()
    (first,) = await desk.join()
    await desk.records.ensure("g", desk.groups.record_of("g"))
    assert await desk.records.find("g") == Record("classic", "consumer", 0)
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
    assert await desk.records.find("g") == Record("classic", "consumer", 0)


async def test_a_record_that_cannot_be_written_is_written_later() -> None:
    desk = Desk()
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


async def test_who_comes_first_after_a_restart_waits_for_the_others() -> None:
    desk = Desk()
    await desk.join()
    await desk.records.ensure("g", desk.groups.record_of("g"))
    desk.start()
    first = await desk.join()
    await desk.wait(3)
    second = await desk.join()
    assert first == second == []
    await desk.wait(1.1)
    await desk.wait(1.1)
    assert first[0].generation == second[0].generation == 1
    assert len(first[0].members + second[0].members) == 2
    (other,) = await desk.join("other")
    assert other.generation == 1, "nobody was in this one"


async def test_long_after_a_restart_nobody_waits() -> None:
    desk = Desk()
    await desk.records.ensure("g", Record("classic", "consumer"))
    desk.start()
    desk.clock.forward(100)
    (first,) = await desk.join()
    assert first.generation == 1


async def test_room() -> None:
    desk = Desk()
    desk.groups._room = Room(10_000)
    (told,) = await desk.join("g" * 3_000)
    assert told.error_code == errors.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(Refused):
        await desk.groups.expect_consumers("g" * 3_000)
    with pytest.raises(Refused):
        desk.groups.made_consumer("g" * 3_000)
    (told,) = await desk.join(client="c" * 10_000)
    assert told.error_code == errors.COORDINATOR_NOT_AVAILABLE
    await desk.wait(1)
    assert desk.groups.all() == []
    assert desk.groups._room.used_bytes == 0


async def test_kinds() -> None:
    desk = Desk()
    await desk.groups.expect_consumers("g")
    group = desk.groups.made_consumer("g")
    beat = Beat("m", 0, rebalance_seconds=1.0, names=frozenset("t"), owned=frozenset())
    assert group.heartbeat(beat, desk.groups.now()).error_code == errors.NONE
    assert desk.groups.find("g") is None
    assert desk.groups.topics_wanted("g") == {"t"}
    assert desk.groups.record_of("g") == Record("consumer", "consumer")
    (told,) = await desk.join()
    assert told.error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    with pytest.raises(Refused):
        desk.groups.made_consumer("g")
    group.remove(*group.members.values())
    (told,) = await desk.join()
    assert told.error_code == errors.NONE
    assert desk.groups.consumer("g") is None
    with pytest.raises(Refused):
        desk.groups.made_consumer("g")


async def test_the_clock_goes_by_itself(autojump_clock: trio.testing.MockClock) -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.groups.run)
        await trio.sleep(1)
        await desk.join()
        desk.clock.forward(30)
        await trio.sleep(1)
        assert desk.groups.all() == []
        nursery.cancel_scope.cancel()
