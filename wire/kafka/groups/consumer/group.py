"""A consumer group (KIP-848): members, target assignment, reconciliation. Pure.

Theory. The group has an epoch. Whenever a member joins, leaves or changes its subscription, or
topics or partitions change, the epoch rises and a target assignment is computed. Members reach it
one by one, each by its own heartbeats:

    it has partitions outside its target     it must revoke them         UNREVOKED_PARTITIONS
    it reports that they are revoked         they are free again         on to the target
    partitions of its target are free        they are assigned           STABLE at the group's epoch
    others still own some of its target      checked at each heartbeat   UNRELEASED_PARTITIONS

A partition belongs to a member from its assignment until the member reports its revocation, or
leaves. So it never belongs to two. A member that does not revoke in time, or is silent for too
long, is removed; its next heartbeat gets UNKNOWN_MEMBER_ID, and it joins again.

A static member (one with an instance id) may leave temporarily: it keeps its partitions. It returns
with another member id, and takes over its former membership.

Changes are stored before the heartbeat that reveals them is answered (`dirty`), so after a restart
the group is as its members last saw it.

The time is a parameter of each call; `tick` runs the timers, none of which fires before `due`.

Invariants: a partition has one owner, in `_owners` and in that member's `assigned` or `revoking`;
no member's epoch is above the group's.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from magnetar.wire.kafka.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)
from magnetar.wire.kafka.groups.classic.group_record import (
    Classic,
    StoredConsumer,
    StoredConsumerGroup,
)
from magnetar.wire.kafka.groups.consumer.assignors import (
    ASSIGNORS,
    DEFAULT,
    Targets,
    TopicIdPartition,
)
from magnetar.wire.kafka.groups.consumer.heartbeat import (
    JOIN,
    LEAVE,
    LEAVE_FOR_NOW,
    Heartbeat,
    HeartbeatResult,
    Timing,
    Topics,
)
from magnetar.wire.kafka.groups.consumer.member import NEVER, ConsumerMember, MemberState, resumed
from magnetar.wire.kafka.groups.memory_budget import MEMBER_BYTES, GroupMemory

PARTITION_BYTES: Final = 250
"""The memory of one assigned partition."""


class ConsumerState(enum.Enum):
    """The values are the names in tools. The state follows from the members' states, so there is no
    table of transitions. Kafka's ConsumerGroupState also has ASSIGNING, because a target may come
    later than its epoch; here both change at once.
    """

    EMPTY = "Empty"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroup:
    """See the module's docstring."""

    def __init__(self, group_id: str, size_max: int, timing: Timing, memory: GroupMemory) -> None:
        self.id = group_id
        self.epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: Targets = {}
        self.topics = Topics()
        self.looked = -NEVER
        """The time of the last lookup of `topics`."""
        self.due = 0.0
        """The time of the next timer."""
        self.is_dead = False
        self.dirty = False
        """Whether it has unstored changes."""
        self.timing = timing
        """Applies to each member from its next heartbeat on."""
        self._size_max = size_max
        self._memory = memory
        self._taken_bytes = 0
        self._static: dict[str, ConsumerMember] = {}
        self._owners: dict[TopicIdPartition, ConsumerMember] = {}
        self._seen: dict[bytes, int] = {}
        """The partition counts of subscribed topics on which the target assignment is based."""

    def stored(self) -> StoredConsumerGroup | None:
        """The group in stored form, None if it is empty; clears `dirty`."""
        self.dirty = False
        if not self.members:
            return None
        members = tuple(one.stored(self.targets[one.id]) for one in self.members.values())
        return StoredConsumerGroup(self.epoch, self._seen, members)

    def resume(self, kept: StoredConsumerGroup, now: float) -> None:
        """Restore the group after a restart."""
        self.epoch, self._seen = kept.epoch, kept.sizes
        for one in kept.members:
            member = self.members[one.member_id] = resumed(one, now, self.timing.session_seconds)
            if member.instance_id is not None:
                self._static[member.instance_id] = member
            self._owners.update(dict.fromkeys(member.assigned | member.revoking, member))
            self.targets[member.id] = set(one.target)
        self._taken_bytes = self._size()
        self._memory.take(self._taken_bytes)

    @property
    def in_use(self) -> bool:
        return bool(self.members)

    @property
    def is_over(self) -> bool:
        return not self.members

    @property
    def state(self) -> ConsumerState:
        if self.is_dead:
            return ConsumerState.DEAD
        if not self.members:
            return ConsumerState.EMPTY
        there = all(
            one.is_away or (one.state is MemberState.STABLE and one.epoch == self.epoch)
            for one in self.members.values()
        )
        return ConsumerState.STABLE if there else ConsumerState.RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members prefer."""
        votes = Counter(one.assignor for one in self.members.values() if one.assignor)
        return votes.most_common(1)[0][0] if votes else DEFAULT

    def names(self) -> set[str]:
        """Topic names to which members subscribe."""
        return set().union(*(one.names for one in self.members.values()))

    def patterns(self) -> set[str]:
        """Patterns to which members subscribe."""
        return {one.pattern for one in self.members.values() if one.pattern}

    # -- heartbeats ---------------------------------------------------------------------------

    def heartbeat(self, beat: Heartbeat, now: float) -> HeartbeatResult:
        """Process a heartbeat; `set_topics` has the topics of its subscription."""
        code = self._refusal(beat)
        if code != NONE:
            return HeartbeatResult(code, member_id=beat.member_id)
        if beat.epoch in (LEAVE, LEAVE_FOR_NOW):
            self._leave(self.members[beat.member_id], beat)
            return HeartbeatResult(member_id=beat.member_id, epoch=beat.epoch)
        member = self._joined(beat) if beat.epoch == JOIN else self.members[beat.member_id]
        self.due = 0.0
        call_by = now + (beat.classic or self.timing).session_seconds
        if member.apply(beat, call_by) or member.id not in self.targets:
            self._turn()
        before = (set(member.assigned), set(member.revoking), member.epoch)
        self._reconcile(member, beat.owned, now)
        self.dirty |= before != (member.assigned, member.revoking, member.epoch)
        changed = beat.is_full or member.assigned != before[0]
        return HeartbeatResult(
            member_id=member.id,
            epoch=member.epoch,
            assigned=frozenset(member.assigned) if changed else None,
            again_seconds=self.timing.heartbeat_seconds,
        )

    def _refusal(self, beat: Heartbeat) -> int:
        """The error of a heartbeat that is invalid for any member."""
        if self.is_dead:
            return UNKNOWN_MEMBER_ID
        member = self.members.get(beat.member_id)
        static = self.static(beat.instance_id)
        if beat.epoch == JOIN:
            return self._refusal_to_join(beat, member or static)
        if beat.instance_id is not None:
            if static is None:
                return UNKNOWN_MEMBER_ID
            if static is not member:
                return FENCED_INSTANCE_ID
        if member is None or (member.classic is None) is not (beat.classic is None):
            return UNKNOWN_MEMBER_ID
        if beat.epoch > 0 and not member.knows(beat):
            return FENCED_MEMBER_EPOCH
        return NONE if self._memory.has(self._growth(member, beat)) else COORDINATOR_NOT_AVAILABLE

    def _refusal_to_join(self, beat: Heartbeat, before: ConsumerMember | None) -> int:
        if before is not None and before.id != beat.member_id and not before.is_away:
            return UNRELEASED_INSTANCE_ID
        if before is not None and before.instance_id != beat.instance_id:
            return UNKNOWN_MEMBER_ID
        if before is None and len(self.members) >= self._size_max:
            return GROUP_MAX_SIZE_REACHED
        return NONE if self._memory.has(self._growth(before, beat)) else COORDINATOR_NOT_AVAILABLE

    def check_commit(self, member_id: str, epoch: int) -> int:
        """Check a member id and its epoch."""
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return NONE
        return STALE_MEMBER_EPOCH if member.classic is None else ILLEGAL_GENERATION

    # -- coming and going ---------------------------------------------------------------------

    def _joined(self, beat: Heartbeat) -> ConsumerMember:
        """The member of a joining heartbeat: a new one, one that rejoins, or a returning static
        one.
        """
        self.dirty = True
        member = self.members.get(beat.member_id)
        if member is not None:
            self._release(member, member.assigned | member.revoking)
            member.assigned, member.revoking = set(), set()
            member.state, member.epoch, member.previous_epoch = (
                MemberState.UNRELEASED_PARTITIONS,
                0,
                0,
            )
            return member
        member = ConsumerMember(beat.member_id, beat.instance_id)
        if beat.instance_id is not None:
            if beat.instance_id in self._static:
                self._take_place(member, self._static[beat.instance_id])
            self._static[beat.instance_id] = member
        self.members[member.id] = member
        return member

    def _take_place(self, member: ConsumerMember, before: ConsumerMember) -> None:
        """Give the partitions of a static member to its new member id."""
        del self.members[before.id]
        member.assigned = before.assigned
        member.names, member.pattern = before.names, before.pattern
        member.assignor, member.classic = before.assignor, before.classic
        member.state = MemberState.UNRELEASED_PARTITIONS
        for partition in member.assigned:
            self._owners[partition] = member
        if before.id in self.targets:
            self.targets[member.id] = self.targets.pop(before.id)

    def _leave(self, member: ConsumerMember, beat: Heartbeat) -> None:
        if beat.epoch == LEAVE or member.instance_id is None:
            self.remove(member)
        else:
            self.step_aside(member)

    def step_aside(self, member: ConsumerMember) -> None:
        """Mark a static member as temporarily absent; it keeps its partitions."""
        self.dirty = True
        self._release(member, member.revoking)
        member.revoking, member.revoke_by = set(), NEVER
        member.state, member.epoch = MemberState.UNRELEASED_PARTITIONS, LEAVE_FOR_NOW

    def remove(self, *members: ConsumerMember) -> None:
        """Remove members, and free their partitions."""
        self.due = 0.0
        for member in members:
            self._drop(member)
        if members:
            self._turn()

    def _drop(self, member: ConsumerMember) -> None:
        del self.members[member.id]
        self.targets.pop(member.id, None)
        if member.instance_id is not None:
            del self._static[member.instance_id]
        self._release(member, member.assigned | member.revoking)

    def _release(self, member: ConsumerMember, partitions: Iterable[TopicIdPartition]) -> None:
        for partition in partitions:
            assert self._owners[partition] is member
            del self._owners[partition]

    def die(self, _code: int = UNKNOWN_MEMBER_ID) -> None:
        """End the group; no call waits in it."""
        self.remove(*self.members.values())
        self.is_dead = True

    def static(self, instance_id: str | None) -> ConsumerMember | None:
        """The static member with that instance id."""
        return None if instance_id is None else self._static.get(instance_id)

    @property
    def is_left_to_classic(self) -> bool:
        """Whether it has members, and all of them use the classic protocol."""
        return bool(self.members) and all(one.classic for one in self.members.values())

    # -- targets ------------------------------------------------------------------------------

    def set_topics(self, topics: Topics, now: float) -> None:
        """Set the existing topics of all subscriptions, including that of a joining member.

        If there is no memory for more, present members do not see new partitions.
        """
        self.looked = now
        before, self.topics = self.topics, topics
        requested = self._sizes_of_topics()
        if not self._memory.has(
            PARTITION_BYTES * (sum(requested.values()) - sum(self._seen.values()))
        ):
            sizes, matches = {**topics.sizes, **self._seen}, {**topics.matches, **before.matches}
            self.topics = Topics(topics.ids, sizes, matches)
            requested = self._sizes_of_topics()
        if requested != self._seen:
            self._turn()

    def _sizes_of_topics(self) -> dict[bytes, int]:
        requested = set().union(*(one.wants(self.topics) for one in self.members.values()))
        return {topic: self.topics.sizes[topic] for topic in requested}

    def _turn(self) -> None:
        """Compute a new target assignment."""
        self.epoch += 1
        self.dirty = True
        self._seen = self._sizes_of_topics()
        wishes = {one.id: one.wants(self.topics) for one in self.members.values()}
        self.targets = ASSIGNORS[self.assignor](wishes, self._seen, self.targets)
        size = self._size()
        self._memory.take(size - self._taken_bytes)
        self._taken_bytes = size

    def _size(self) -> int:
        """The approximate memory of the members and their partitions."""
        return _size_of(self.members.values(), self._seen)

    def _growth(self, member: ConsumerMember | None, beat: Heartbeat) -> int:
        """The most memory that a heartbeat may add."""
        more = MEMBER_BYTES if member is None else 0
        if beat.names is None and beat.pattern is None:
            return more
        names, pattern = beat.names or frozenset(), beat.pattern or ""
        more += _size_of_wishes(names, pattern, beat.classic)
        names |= self.topics.matches.get(pattern, frozenset())
        ids = self.topics.ids_of(names)
        new = sum(self.topics.sizes[topic] for topic in ids if topic not in self._seen)
        return more + PARTITION_BYTES * new

    # -- getting there ------------------------------------------------------------------------

    def _reconcile(
        self, member: ConsumerMember, owned: frozenset[TopicIdPartition] | None, now: float
    ) -> None:
        """Move a member towards its target, as far as other members have released partitions."""
        if member.state is MemberState.STABLE and member.epoch == self.epoch:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if owned is None or owned & member.revoking:
                return  # it may still be reading
            self._release(member, member.revoking)
            member.revoking, member.revoke_by = set(), NEVER
        target = self.targets[member.id]
        surplus = member.assigned - target
        member.assigned &= target
        if surplus and (owned is None or owned & surplus):
            member.state, member.revoking = MemberState.UNREVOKED_PARTITIONS, surplus
            member.revoke_by = now + member.rebalance_seconds
            return
        self._release(member, surplus)
        free = {one for one in target - member.assigned if one not in self._owners}
        self._owners.update(dict.fromkeys(free, member))
        member.assigned |= free
        member.state = (
            MemberState.STABLE if member.assigned == target else MemberState.UNRELEASED_PARTITIONS
        )
        member.takes_epoch(self.epoch)

    def may_advance(self, member: ConsumerMember) -> bool:
        """Whether its next heartbeat would bring it closer to its target."""
        if member.epoch != self.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        lacks = self.targets[member.id] - member.assigned
        return bool(lacks) and not any(one in self._owners for one in lacks)

    # -- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Remove members that were silent for too long, or have not revoked in time."""
        members = self.members.values()
        self.remove(*[one for one in members if one.out_at <= now])
        self.due = min((one.out_at for one in members), default=NEVER)


def size_of_kept(kept: StoredConsumerGroup) -> int:
    """The approximate memory of a group that is restored from this."""
    return _size_of(kept.members, kept.sizes)


def _size_of(
    members: Collection[ConsumerMember | StoredConsumer], sizes: Mapping[bytes, int]
) -> int:
    words = sum(_size_of_wishes(one.names, one.pattern, one.classic) for one in members)
    return MEMBER_BYTES * len(members) + words + PARTITION_BYTES * sum(sizes.values())


def _size_of_wishes(names: frozenset[str], pattern: str, classic: Classic | None) -> int:
    """The memory of a subscription; a classic member has it once for each protocol."""
    protocols = classic.protocols if classic is not None else ("",)
    words = _size_of_words(names) * len(protocols) + _size_of_words(protocols)
    return words + 4 * len(pattern)


def _size_of_words(words: Iterable[str]) -> int:
    return sum(4 * len(word) + 100 for word in words)
