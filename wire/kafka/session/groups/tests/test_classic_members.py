"""An application moves over to the newer protocol, and back: its group as clients see it."""

from __future__ import annotations

from typing import Any

from magnetar.core.testing.bench import settled
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.groups.classic import consumer_protocol
from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
from magnetar.wire.kafka.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinProtocol,
    LeaveGroupRequest,
    LeaveMember,
    ListGroupsRequest,
    SyncAssignment,
    SyncGroupRequest,
)
from magnetar.wire.kafka.session.groups.classic_members import PROTOCOLS_MAX
from magnetar.wire.kafka.session.groups.tests.test_classic import commit, join
from magnetar.wire.kafka.session.groups.tests.test_consumer import Reader, describe, made


class Older:
    """A client of the classic protocol, an eager one. Its name is its instance, if it is static."""

    def __init__(self, client: Client, instance: str | None = None) -> None:
        self.client = client
        self.instance = instance
        self.id = ""
        self.generation = -1
        self.reads: dict[str, list[int]] = {}

    async def come(self, *names: str, session_ms: int = 10_000) -> Any:
        self.reads = {}
        said = consumer_protocol.subscription(names or ("t",), 1)
        for _ in range(2):
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=20_000,
                member_id=self.id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocols=[JoinProtocol(name="range", metadata=said)],
            )
            results = await self.client.exchange(request, 9)
            self.id = results.member_id or self.id
            if results.error_code != errors.MEMBER_ID_REQUIRED:
                break
        self.generation = results.generation_id
        return results

    async def ask(self, **tasks: bytes) -> Any:
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncAssignment(member_id=m, assignment=t) for m, t in tasks.items()],
        )
        results = await self.client.exchange(request, 5)
        task = consumer_protocol.assignment_in(results.assignment)
        if task is not None:
            self.reads = {one.topic: one.partitions for one in task.assigned_partitions}
        return results

    async def live(self) -> int:
        request = HeartbeatRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
        )
        code: int = (await self.client.exchange(request, 4)).error_code
        return code

    async def leave(self) -> int:
        one = LeaveMember(member_id=self.id, group_instance_id=self.instance)
        results = await self.client.exchange(LeaveGroupRequest(group_id="g", members=[one]), 4)
        code: int = results.members[0].error_code
        return code

    async def settles(self) -> None:
        """As a client does when it is told to come again."""
        assert await self.live() == errors.REBALANCE_IN_PROGRESS
        assert (await self.come()).error_code == errors.NONE
        assert (await self.ask()).error_code == errors.NONE


async def alone(stage: Stage) -> Older:
    """The only member of a classic group, which reads four partitions."""
    one = Older(await stage.client())
    assert (await one.come()).leader == one.id
    await one.ask(**{one.id: consumer_protocol.assignment({"t": [0, 1, 2, 3]}, 1)})
    assert await one.live() == errors.NONE
    return one


async def kind(stage: Stage) -> tuple[str, str]:
    for _ in range(3):
        await stage.front.services.groups.tick()
    (one,) = (await (await stage.client()).exchange(ListGroupsRequest())).groups
    return one.group_type, one.group_state


async def test_over_and_back(stage: Stage) -> None:
    await made(stage, "t", 4)
    older, newer = await alone(stage), Reader(await stage.client(), "a")
    assert await kind(stage) == ("classic", "Stable")
    assert (await newer.join("t")).error_code == errors.NONE
    assert newer.count == 0
    assert await kind(stage) == ("consumer", "Reconciling")
    await older.settles()
    await newer.beat()
    assert sorted(older.reads["t"] + next(iter(newer.reads.values()))) == [0, 1, 2, 3]
    assert await kind(stage) == ("consumer", "Stable")
    described = {one.member_id: one for one in (await describe(newer.client)).members}
    assert [described[one].member_type for one in (older.id, "a")] == [0, 1]
    newer.epoch = -1
    await newer.beat()
    assert await kind(stage) == ("classic", "PreparingRebalance")
    assert await older.live() == errors.REBALANCE_IN_PROGRESS
    assert (await older.come()).leader == older.id
    task = consumer_protocol.assignment({"t": [0, 1, 2, 3]}, 1)
    assert (await older.ask(**{older.id: task})).assignment == task
    assert await kind(stage) == ("classic", "Stable")


async def test_a_classic_member_comes_into_a_group_of_the_newer_protocol(stage: Stage) -> None:
    await made(stage, "t", 4)
    older, newer = Older(await stage.client()), Reader(await stage.client(), "a")
    await newer.join("t")
    results = await older.come()
    assert (results.error_code, results.leader, results.members) == (0, "", [])
    await older.ask()
    assert older.reads == {}
    await newer.beat()
    await newer.beat()
    await older.settles()
    assert len(older.reads["t"]) == newer.count == 2
    assert await older.leave() == errors.NONE
    assert await older.leave() == errors.UNKNOWN_MEMBER_ID
    await newer.beat()
    assert newer.count == 4


async def test_who_waits_for_the_others_is_told_to_come_again(stage: Stage) -> None:
    """A round of the classic protocol is under way when the first new one comes."""
    await made(stage, "t", 4)
    first, second = await alone(stage), await stage.client()
    results = await second.exchange(join())
    second.ask(join(results.member_id))
    await settled()
    assert await first.live() == errors.REBALANCE_IN_PROGRESS
    newer = Reader(await stage.client(), "a")
    await newer.join("t")
    (results,) = second.receive()
    assert results.error_code == errors.REBALANCE_IN_PROGRESS
    assert (await second.exchange(join(results.member_id))).error_code == errors.NONE
    await first.settles()
    await newer.beat()
    assert len(first.reads["t"]) + newer.count in (2, 3), "the second has not come again yet"


async def test_a_static_member_of_the_classic_protocol(stage: Stage) -> None:
    await made(stage, "t", 4)
    older, newer = Older(await stage.client(), "i"), Reader(await stage.client(), "a")
    await newer.join("t")
    await older.come()
    await newer.beat()
    await newer.beat()
    await older.settles()
    before, older.id = (older.id, older.reads), ""
    assert (await older.come()).member_id != before[0]
    await older.ask()
    assert older.reads == before[1]
    assert (await newer.beat()).assignment is None, "nobody else notices"
    older.id = before[0]
    assert (await older.come()).error_code == errors.FENCED_INSTANCE_ID


async def test_commits_of_a_classic_member(stage: Stage) -> None:
    await made(stage, "t", 4)
    older, newer = await alone(stage), Reader(await stage.client(), "a")
    await newer.join("t")

    async def code(version: int, late: int = 0) -> int:
        request = commit(0)
        request.member_id = older.id
        request.generation_id_or_member_epoch = older.generation + late
        results = await older.client.exchange(request, version)
        found: int = results.topics[0].partitions[0].error_code
        return found

    assert await code(7) == await code(9) == errors.NONE
    assert await code(7, late=1) == errors.ILLEGAL_GENERATION


async def test_after_a_restart_both_kinds_go_on(stage: Stage) -> None:
    await made(stage, "t", 4)
    older, newer = await alone(stage), Reader(await stage.client(), "a")
    await newer.join("t")
    await older.settles()
    await newer.beat()
    reads = (older.reads, newer.reads)
    again = Stage(stage.stores, stage.broker)
    await again.front.open()
    older.client, newer.client = await again.client(), await again.client()
    for _ in range(2):
        assert await older.live() == errors.NONE
        assert (await newer.beat()).error_code == errors.NONE
    assert (older.reads, newer.reads) == reads
    newer.epoch = -1
    await newer.beat()
    assert await older.live() == errors.REBALANCE_IN_PROGRESS


async def test_the_last_new_one_is_silent_for_too_long(stage: Stage) -> None:
    await made(stage, "t", 4)
    older, newer = await alone(stage), Reader(await stage.client(), "a")
    await newer.join("t")
    await older.settles()
    for _ in range(8):
        stage.stores.clock.forward(6)
        await stage.front.services.groups.tick()
        await older.live()
    assert await kind(stage) == ("classic", "PreparingRebalance")


async def test_a_group_that_cannot_go_over(stage: Stage, monkeypatch: Any) -> None:
    await made(stage, "t", 4)
    older, newer = await alone(stage), Reader(await stage.client(), "a")
    groups: GroupCoordinator = stage.front.services.groups
    with monkeypatch.context() as patch:
        patch.setattr(groups._memory, "bytes_max", groups._memory.used_bytes + 100)
        assert (await newer.join("t")).error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert await older.live() == errors.NONE, "nothing has happened"
    assert await kind(stage) == ("classic", "Stable")


async def test_a_classic_group_for_which_there_is_no_room_begins_anew(
    stage: Stage, monkeypatch: Any
) -> None:
    await made(stage, "t", 4)
    older, newer = await alone(stage), Reader(await stage.client(), "a")
    await newer.join("t")
    await older.settles()
    with monkeypatch.context() as patch:
        patch.setattr(stage.front.services.groups._memory, "bytes_max", 5_000)
        newer.epoch = -1
        assert (await newer.beat()).error_code == errors.NONE
    assert await older.live() == errors.UNKNOWN_MEMBER_ID
    older.id = ""
    assert (await older.come()).error_code == errors.NONE


async def test_what_is_too_much(stage: Stage) -> None:
    await made(stage, "t", 1)
    newer, other = Reader(await stage.client(), "a"), await stage.client()
    await newer.join("t")
    request = join("m")
    request.protocols = [
        JoinProtocol(name=str(n), metadata=consumer_protocol.subscription({"t"}, 0))
        for n in range(PROTOCOLS_MAX + 1)
    ]
    assert (await other.exchange(request)).error_code == errors.INCONSISTENT_GROUP_PROTOCOL
