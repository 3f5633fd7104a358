"""The group coordinator: all groups that this server coordinates, and their timers.

A group is in memory while it has members, or is about to. It is a classic group or a consumer group
(KIP-848), and changes between them with its members. Its offsets (as cursors), its record and its
members are durable, so that members continue after a restart without a rebalance.

A stored group is loaded when this server starts or first needs it, if this server owns it
(`ready`). If another coordinator writes its members, it is dropped here (`drop`): waiting members
are answered NOT_COORDINATOR, keep their member ids, and find the coordinator again.

Invariant: a change between having members and having none is in the group's record before the group
is dropped from memory.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.cooperation import KeyedLocks
from magnetar.core.kernel.errors import BrokerError, Corrupted, NotCoordinator
from magnetar.core.ports.ledger_store import Done
from magnetar.wire.kafka.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    INCONSISTENT_GROUP_PROTOCOL,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    KafkaRefusal,
)
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.group_record import (
    AnyStoredGroup,
    StoredGroup,
)
from magnetar.wire.kafka.groups.classic.join_phase import RebalanceRules
from magnetar.wire.kafka.groups.classic.member import Joined, Joining, resumed
from magnetar.wire.kafka.groups.classic.store import MemberStore
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup, size_of_kept
from magnetar.wire.kafka.groups.consumer.heartbeat import Topics
from magnetar.wire.kafka.groups.group_configs import GroupConfigs
from magnetar.wire.kafka.groups.group_records import CLASSIC, CONSUMER, GroupRecord, GroupRecords
from magnetar.wire.kafka.groups.memory_budget import GROUP_BYTES, GroupMemory
from magnetar.wire.kafka.groups.options import GroupOptions

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.1
LOADS_AT_ONCE: Final = 500
"""Groups that are loaded together when the server starts."""
CONSUMERS: Final = "consumer"
"""The protocol type of all consumer groups."""

AnyGroup = Group | ConsumerGroup
SomeGroup = TypeVar("SomeGroup", Group, ConsumerGroup)


class GroupCoordinator:
    """See the module's docstring."""

    def __init__(
        self,
        clock: Clock,
        options: GroupOptions,
        records: GroupRecords,
        member_store: MemberStore,
        group_configs: GroupConfigs,
        emptied: Callable[[str], Awaitable[None]],
    ) -> None:
        self._clock = clock
        self._records = records
        self._member_store = member_store
        self._group_configs = group_configs
        self._emptied = emptied
        """Called with each group whose last member has left."""
        self._rules = RebalanceRules(
            options.size_max, options.first_delay_seconds, new_id, self._store, call_soon
        )
        self._memory = GroupMemory()
        self._groups: dict[str, AnyGroup] = {}
        self._noted: dict[str, bool] = {}
        """For groups in memory: whether their records say that they have members."""
        self._expected: Counter[str] = Counter()
        """The number of pending joins of each consumer group."""
        self._loading: KeyedLocks[str] = KeyedLocks()
        """Locks of the groups that are being loaded."""
        self._keeping: dict[str, Completion[None]] = {}
        """Consumer groups with changes that are being stored."""
        self._has_groups = trio.Event()

    async def open(self) -> None:
        """Load the groups with members that this broker coordinates."""
        names = await self._member_store.names()
        for start in range(0, len(names), LOADS_AT_ONCE):
            async with trio.open_nursery() as nursery:  # so that their claims are one group commit
                for group_id in names[start : start + LOADS_AT_ONCE]:
                    nursery.start_soon(self._load_stored, group_id)

    async def _load_stored(self, group_id: str) -> None:
        """Load a group at the start; an unreadable record fails only its group."""
        try:
            await self._load(group_id)
        except Corrupted as error:
            log.error("group %s: its members cannot be loaded: %s", group_id, error)

    async def ready(self, group_id: str) -> None:
        """Load the group if it is stored; `NotCoordinator` if another broker coordinates it.

        Called before each request about a group; it is cheap for a group in memory.
        """
        if group_id not in self._groups:
            await self._load(group_id)

    async def _load(self, group_id: str) -> None:
        """Load the stored members, unless the group is in memory."""
        async with self._loading.at(group_id):
            kept = None
            if group_id not in self._groups:
                kept = await self._member_store.claim(group_id)
            if kept is not None:
                self._resume(group_id, kept)

    def _resume(self, group_id: str, kept: AnyStoredGroup) -> None:
        if isinstance(kept, StoredGroup):
            classic = self._begin(Group(group_id, self._rules, self._memory))
            classic.resume(kept, self.now())
        else:
            self._begin(self._consumers(group_id)).resume(kept, self.now())
        self._noted[group_id] = True

    def _store(self, group_id: str, kept: AnyStoredGroup | None, done: Done) -> None:
        """Store the members; a group that another broker coordinates is dropped."""

        def stored(error: BrokerError | None) -> None:
            if isinstance(error, NotCoordinator):
                self.drop(group_id)
            done(error)

        self._member_store.keep(group_id, kept, stored)

    def drop(self, group_id: str) -> None:
        """Forget a group that another broker coordinates; its members find that broker."""
        log.warning("group %s: another broker coordinates it now", group_id)
        self._member_store.release(group_id)
        self._records.release(group_id)
        self._remove(group_id, NOT_COORDINATOR)

    def now(self) -> float:
        return self._clock.monotonic()

    def find(self, group_id: str) -> Group | None:
        """The classic group, if there is one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, Group) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group (KIP-848), if there is one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def read_newer(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group (KIP-848), if it has members."""
        newer = self.consumer(group_id)
        return newer if newer is not None and newer.in_use else None

    def in_use(self, group_id: str) -> bool:
        """Whether the group has members."""
        group = self._groups.get(group_id)
        return group is not None and group.in_use

    def all(self) -> list[AnyGroup]:
        return list(self._groups.values())

    def join(self, group_id: str, request: Joining, done: Callable[[Joined], None]) -> None:
        """Let a member join the classic group, which is created if necessary."""
        group = self.find(group_id)
        code = NONE
        if self.read_newer(group_id):
            code = INCONSISTENT_GROUP_PROTOCOL
        elif group is None and request.member_id:
            code = UNKNOWN_MEMBER_ID
        elif group is None and not self._memory.has(_size(group_id)):
            code = COORDINATOR_NOT_AVAILABLE
        if code != NONE:
            done(Joined(error_code=code, member_id=request.member_id))
            return
        if group is None:
            group = self._begin(Group(group_id, self._rules, self._memory))
        group.join(request, self.now(), done)

    @contextmanager
    def expecting(self, group_id: str) -> Iterator[None]:
        """Count a pending join of a consumer group for the length of a block. Meanwhile the group
        is neither downgraded to a classic group nor removed, even without consumer members.
        """
        self._expected[group_id] += 1
        try:
            yield
        finally:
            self._expected[group_id] -= 1
            if not self._expected[group_id]:
                del self._expected[group_id]
            if (group := self._groups.get(group_id)) is not None:
                group.due = 0.0  # check it again in the next tick

    async def expect_consumers(self, group_id: str) -> None:
        """Store that the group is a consumer group with members, before its first member joins."""
        if self.read_newer(group_id):
            return
        if not self._memory.has(_size(group_id)):
            raise KafkaRefusal(COORDINATOR_NOT_AVAILABLE, "groups take as much memory as they may")
        await self._records.ensure(group_id, GroupRecord(CONSUMER, CONSUMERS))
        await self._records.note(group_id, CONSUMER, CONSUMERS, 0)

    def made_consumer(self, group_id: str) -> ConsumerGroup:
        """Create a consumer group."""
        if self.in_use(group_id):
            raise KafkaRefusal(GROUP_ID_NOT_FOUND, "the group is one of the older protocol")
        if not self._memory.has(_size(group_id)):
            raise KafkaRefusal(COORDINATOR_NOT_AVAILABLE, "groups take as much memory as they may")
        group = self._begin(self._consumers(group_id))
        self._noted[group_id] = True
        return group

    def move_over(self, group: Group, topics: Topics) -> None:
        """Upgrade a classic group with all its members to a consumer group, for a member that joins
        by the consumer protocol. The record states this already.
        """
        from magnetar.wire.kafka.groups import migration

        kept = migration.moved_over(group, topics)
        if kept is None or len(group.members) >= self._rules.size_max:
            raise KafkaRefusal(
                GROUP_ID_NOT_FOUND, "the group is one of the older protocol, and stays so"
            )
        if not self._memory.has(size_of_kept(kept)):
            raise KafkaRefusal(COORDINATOR_NOT_AVAILABLE, "groups take as much memory as they may")
        for member in group.members:
            member.refuse(REBALANCE_IN_PROGRESS)
        newer = self._begin(self._consumers(group.id))
        newer.resume(kept, self.now())
        newer.set_topics(topics, self.now())
        newer.dirty = self._noted[group.id] = True
        log.info("group %s: goes over to the newer protocol", group.id)

    def move_back(self, group: ConsumerGroup) -> bool:
        """Downgrade a consumer group with classic members only. The stored group remains the
        consumer group until they have rejoined.
        """
        if not group.is_left_to_classic or group.id in self._expected:
            return False
        from magnetar.wire.kafka.groups import migration

        kept, now = migration.moved_back(group), self.now()
        older = self._begin(Group(group.id, self._rules, self._memory))
        if self._memory.has(sum(resumed(one, CONSUMERS, now).size for one in kept.members)):
            older.resume(kept, now)
            older.rebalance(now)
        log.info("group %s: goes back to the classic protocol", group.id)
        return True

    def _consumers(self, group_id: str) -> ConsumerGroup:
        timing = self._group_configs.timing(group_id)
        return ConsumerGroup(group_id, self._rules.size_max, timing, self._memory)

    def retime(self, group_id: str) -> None:
        """Apply changed configs to the group."""
        group = self.consumer(group_id)
        if group is not None:
            group.timing = self._group_configs.timing(group_id)

    async def keep(self, group: ConsumerGroup) -> None:
        """Store the group before a member learns its new state."""
        waiting = self._keeping.get(group.id)
        if group.dirty:
            waiting = self._keeping[group.id] = Completion[None]()
            self._store(group.id, group.stored(), waiting.done)
        if waiting is None:
            return
        try:
            await waiting.result()
        except BrokerError:
            group.dirty = True
            raise
        finally:
            if self._keeping.get(group.id) is waiting:
                del self._keeping[group.id]

    def _begin(self, group: SomeGroup) -> SomeGroup:
        """Add a group; it replaces an empty one of the other protocol."""
        self.forget(group.id)
        self._memory.take(_size(group.id))
        self._groups[group.id] = group
        self._noted[group.id] = False
        self._has_groups.set()
        return group

    def forget(self, group_id: str) -> None:
        """Remove an empty or deleted group; callers that hold it look it up again."""
        self._remove(group_id, UNKNOWN_MEMBER_ID)

    def _remove(self, group_id: str, code: int) -> None:
        """Remove a group, and answer the calls that wait in it with that code."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            del self._noted[group_id]
            group.die(code)
            self._memory.take(-_size(group_id))

    def subscribed_topics(self, group_id: str) -> set[str] | None:
        """Topics to which members of the group subscribe; None if that is unknown."""
        from magnetar.wire.kafka.groups.classic.topics import subscribed_topics

        group, found = self._groups.get(group_id), set[str]()
        if isinstance(group, ConsumerGroup):
            return group.names().union(*group.topics.matches.values())
        for member in group.members if group is not None else ():
            requested = subscribed_topics(member)
            if requested is None:
                return None
            found |= requested
        return found

    def record_of(self, group_id: str) -> GroupRecord:
        """The record of a group that commits for the first time."""
        group = self._groups.get(group_id)
        if group is None or not group.in_use:
            return GroupRecord()
        return GroupRecord(*kind_of(group))

    async def run(self) -> None:
        """Until cancelled: run the timers of all groups."""
        while True:
            if not self._groups:
                self._has_groups = trio.Event()
                await self._has_groups.wait()
            await trio.sleep(TICK_SECONDS)
            await self.tick()

    async def tick(self) -> None:
        """Run the timers of each group, and record which have gained or lost their members."""
        now = self.now()
        for group in self.all():
            if group.due > now:
                continue
            group.tick(now)
            if isinstance(group, ConsumerGroup):
                if self.move_back(group):
                    continue
                if group.dirty:
                    self._store(group.id, group.stored(), partial(_stored_later, group))
            if group.id in self._expected:
                continue  # a join is pending, and the record has it already
            if group.in_use is not self._noted.get(group.id, group.in_use):
                await self._note(group)
            elif group.is_over:
                self.forget(group.id)

    async def _note(self, group: AnyGroup) -> None:
        in_use = group.in_use
        empty_since_ms = 0 if in_use else self._clock.wall_ms()
        group.due = 0.0  # check it again in the next tick
        try:
            await self._records.note(group.id, *kind_of(group), empty_since_ms)
            if not in_use:
                await self._emptied(group.id)
        except NotCoordinator:
            self.drop(group.id)
            return
        except BrokerError as error:
            log.warning("group %s: its record is out of date: %s", group.id, error)
            return
        if self._groups.get(group.id) is group:
            self._noted[group.id] = in_use


def _stored_later(group: ConsumerGroup, error: BrokerError | None) -> None:
    """After an error, store the group at the next tick."""
    if error is not None:
        group.dirty = True


def kind_of(group: AnyGroup) -> tuple[str, str]:
    """The protocol of a group, as its record names it, and its protocol type."""
    if isinstance(group, ConsumerGroup):
        return CONSUMER, CONSUMERS
    return CLASSIC, group.protocol_type or ""


def new_id(name: str) -> str:
    """A member id for clients that do not choose their own: the client id and a UUID."""
    return f"{name}-{uuid.uuid4()}"


def call_soon(call: Callable[[], None]) -> None:
    """Schedule a call after all tasks that are ready now."""
    trio.lowlevel.current_trio_token().run_sync_soon(call)


def _size(group_id: str) -> int:
    return GROUP_BYTES + 4 * len(group_id)
