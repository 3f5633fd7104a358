"""A classic group: its members, its generation, its rebalances. Pure.

    EMPTY                   it has no members
    PREPARING_REBALANCE     members join, or rejoin, until all known ones have, or time is up
    COMPLETING_REBALANCE    the leader computes the assignment; the others wait for it
    STABLE                  every member may fetch its assignment
    DEAD                    deleted: callers that hold it look up its successor

`state.py` has the table of transitions and enforces it.

A rebalance begins when a member joins, leaves, times out, or rejoins with other metadata; it ends
with a higher generation. The first rebalance of an empty group may have an initial delay: it lasts
that long even if all members have joined, and longer if more join meanwhile. After each rebalance,
members have as much time for SyncGroup as they had for JoinGroup.

The leader's assignment is stored before any member receives it, and so is a static member's new id:
after a restart groups are STABLE as before, and members continue without a rebalance.

A new member may be assigned an id to rejoin with (KIP-394). Rebalances wait for these members, too,
for a while.

The time is a parameter of each call; `tick` runs the timers, none of which fires before `due`.

Invariants: each join and each sync is answered once; in COMPLETING_REBALANCE and STABLE there is
a leader, which is a member; a static member (one with an instance id) is in the group once; memory
for a member is reserved before it is stored; the answers of a generation are remembered until the
next one is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ports.ledger_store import Done
from magnetar.wire.kafka.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from magnetar.wire.kafka.groups.classic import protocols
from magnetar.wire.kafka.groups.classic.group_record import StoredGroup, unheard
from magnetar.wire.kafka.groups.classic.join_phase import JoinPhase, RebalanceRules, begun
from magnetar.wire.kafka.groups.classic.member import (
    NEVER,
    ClassicMember,
    Joined,
    Joining,
    Synced,
    Syncing,
    resumed,
    size_of_member,
)
from magnetar.wire.kafka.groups.classic.members import Members
from magnetar.wire.kafka.groups.classic.state import ClassicGroupState, following
from magnetar.wire.kafka.groups.memory_budget import GroupMemory

ID_SECONDS: Final = 60.0
"""How long a new member has to rejoin with its assigned id; clients do so at once."""


class Group:
    """See the module's docstring."""

    def __init__(self, group_id: str, rules: RebalanceRules, memory: GroupMemory) -> None:
        self.id = group_id
        self.state = ClassicGroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader = ""
        self.members = Members(memory)
        self.due = 0.0
        """The time of the next timer."""
        self._rules = rules
        self._memory = memory
        self._round = JoinPhase(NEVER, NEVER)
        self._sync_ends = NEVER
        self._keeps = 0
        """The generation whose assignments are being stored."""

    def resume(self, kept: StoredGroup, now: float) -> None:
        """Restore the group after a restart; the sessions of its members begin now."""
        assert not self.in_use, "a group is loaded before anybody is in"
        self.generation, self.leader = kept.generation, kept.leader
        self.protocol_type, self.protocol = kept.protocol_type, kept.protocol
        for one in kept.members:
            self.members.add(resumed(one, kept.protocol_type, now))
        self.state = ClassicGroupState.STABLE

    def _enter(self, state: ClassicGroupState) -> None:
        """Enter a state; all transitions go through here."""
        self.state = following(self.state, state)

    def rebalance(self, now: float) -> None:
        """Make all members rejoin."""
        self.due = 0.0
        self._begin_round(now)

    @property
    def in_use(self) -> bool:
        return self.state not in (ClassicGroupState.EMPTY, ClassicGroupState.DEAD)

    @property
    def is_over(self) -> bool:
        """Whether it has no members, and no pending ones."""
        return not self.members and not self.members.expected

    # -- joining ------------------------------------------------------------------------------

    def join(self, request: Joining, now: float, done: Callable[[Joined], None]) -> None:
        """Join or rejoin; `done` gets the result when the rebalance ends."""
        refusal = self._refusal(request)
        if refusal != NONE:
            done(Joined(error_code=refusal, member_id=request.member_id))
            return
        self.due = 0.0
        member = self.members.get(request.member_id)
        if member is None and self.members.static(request.instance_id):
            self._replace(request, now, done)
        elif member is None:
            self._newcomer(request, now, done)
        else:
            self._again(member, request, now, done)

    def _refusal(self, request: Joining) -> int:
        """The error of a request that is invalid for any member."""
        if self.state is ClassicGroupState.DEAD:
            return UNKNOWN_MEMBER_ID
        known = self.members.static(request.instance_id)
        before = self.members.get(request.member_id or known or "")
        if request.member_id and not self.members.expects(request.member_id):
            if known not in (None, request.member_id):
                return FENCED_INSTANCE_ID
            if before is None or request.instance_id not in (None, before.instance_id):
                return UNKNOWN_MEMBER_ID
        if not protocols.fits(request, self.protocol_type, self.members, before):
            return INCONSISTENT_GROUP_PROTOCOL
        if before is None and len(self.members) >= self._rules.size_max:
            return GROUP_MAX_SIZE_REACHED
        held = 0 if before is None else size_of_member(before.request)
        grows = size_of_member(request) - held
        return NONE if self._memory.has(grows) else COORDINATOR_NOT_AVAILABLE

    def _newcomer(self, request: Joining, now: float, done: Callable[[Joined], None]) -> None:
        member_id = request.member_id or self._new_id(request)
        if not request.member_id and request.id_required and request.instance_id is None:
            if len(self.members) + self.members.expected >= self._rules.size_max:
                done(Joined(error_code=GROUP_MAX_SIZE_REACHED))
                return
            self.members.expect(member_id, now + min(request.session_seconds, ID_SECONDS))
            done(Joined(error_code=MEMBER_ID_REQUIRED, member_id=member_id))
            return
        self.members.unexpect(member_id)
        self._add(ClassicMember(member_id, request, now), done)
        self._round.grew = True
        self._begin_round(now)

    def _new_id(self, request: Joining) -> str:
        return self._rules.new_id(request.instance_id or request.client_id)

    def _add(self, member: ClassicMember, done: Callable[[Joined], None]) -> None:
        self.members.add(member)
        member.joins(done)
        self.protocol_type = member.request.protocol_type
        self.leader = self.leader or member.id

    def _replace(self, request: Joining, now: float, done: Callable[[Joined], None]) -> None:
        """A static member has returned without its member id: it gets a new one, and there is no
        rebalance if the protocol stays the same (KIP-345).
        """
        old = self.members.get(self.members.static(request.instance_id) or "")
        assert old is not None
        self.members.drop(old)
        old.refuse(FENCED_INSTANCE_ID)
        member = ClassicMember(self._new_id(request), request, now)
        member.assignment, member.is_new, member.synced = old.assignment, old.is_new, True
        leader_shown = self.leader
        if self.leader == old.id:
            self.leader = member.id
            leader_shown = member.id if request.may_skip else old.id
        self._add(member, done)
        if self.state is not ClassicGroupState.STABLE:
            self._begin_round(now)
        elif protocols.elected(self.members) == self.protocol:
            self._keep(partial(self._replaced, member, leader_shown))
        else:
            self._begin_round(now)

    def _replaced(self, member: ClassicMember, leader: str, error: BrokerError | None) -> None:
        """Answer once the new id is stored, unless a rebalance has begun, which answers itself."""
        if self.state is not ClassicGroupState.STABLE or member not in self.members:
            return
        if error is not None:
            member.refuse(COORDINATOR_NOT_AVAILABLE)
        elif member.join_waits is not None:
            # a client that cannot skip gets another leader's id, so that it assigns nothing
            skip = leader == member.id
            member.answer_join(self._result(member, leader=leader, skip=skip))

    def _again(
        self, member: ClassicMember, request: Joining, now: float, done: Callable[[Joined], None]
    ) -> None:
        same = member.request.protocols == request.protocols
        self.members.change(member, request)
        member.heard = now
        leads = member.id == self.leader
        if (self.state is ClassicGroupState.COMPLETING_REBALANCE and same) or (
            self.state is ClassicGroupState.STABLE and same and not leads
        ):
            done(self._result(member, leader=self.leader))  # a repeated join without a change
            return
        member.joins(done)
        self._begin_round(now)

    # -- rounds -------------------------------------------------------------------------------

    def _begin_round(self, now: float) -> None:
        """Make all members rejoin; waiting SyncGroups are answered with that."""
        if self.state is not ClassicGroupState.PREPARING_REBALANCE:
            for member in self.members:
                member.answer_sync(Synced(error_code=REBALANCE_IN_PROGRESS))
            first = self.state is ClassicGroupState.EMPTY
            gather = self._rules.first_delay_seconds if first else None
            self._round = begun(now, self._rebalance_seconds(), gather)
            self._enter(ClassicGroupState.PREPARING_REBALANCE)
            self._sync_ends = NEVER
            self._look_soon(now)
        self._end_round_if_complete(now)

    def _rebalance_seconds(self) -> float:
        return max(one.request.rebalance_seconds for one in self.members)

    def _end_round_if_complete(self, now: float) -> None:
        if self._round.gathers or self.members.expected:
            return
        if all(member.join_waits is not None for member in self.members):
            self._end_round(now)

    def _end_round(self, now: float) -> None:
        """Remove members that have not rejoined; a static one stays until its session expires."""
        for member in self.members:
            if member.join_waits is None and member.instance_id is None:
                self._drop(member, UNKNOWN_MEMBER_ID)
        waiting = [one.id for one in self.members if one.join_waits is not None]
        if self.members and not waiting:
            self._round = JoinPhase(now + self._rebalance_seconds(), NEVER)
            return
        self.generation += 1
        if not self.members:
            self._become_empty()
            return
        if self.leader not in waiting:
            self.leader = waiting[0]
        self.protocol = protocols.elected(self.members)
        self._enter(ClassicGroupState.COMPLETING_REBALANCE)
        self._sync_ends = now + self._rebalance_seconds()
        for member in self.members:
            self.members.give(member, b"")
            member.heard, member.is_new = now, False
            member.synced = False
            member.answer_join(self._result(member, leader=self.leader))

    def _result(self, member: ClassicMember, *, leader: str, skip: bool = False) -> Joined:
        assert self.protocol is not None
        members = self.members if leader == member.id else ()
        return Joined(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=leader,
            member_id=member.id,
            members=tuple(
                (one.id, one.instance_id, one.metadata(self.protocol)) for one in members
            ),
            skip_assignment=skip,
        )

    # -- syncing ------------------------------------------------------------------------------

    def sync(self, request: Syncing, now: float, done: Callable[[Synced], None]) -> None:
        """Return the member's assignment; the leader's request has those of all members."""
        code = self._refusal_of_sync(request)
        if code != NONE:
            done(Synced(error_code=code))
            return
        member = self.members.get(request.member_id)
        assert member is not None, "just checked"
        member.heard, member.synced = now, True
        if self.state is ClassicGroupState.STABLE:
            done(self._task(member))
            return
        member.syncs(done)
        if member.id == self.leader and self._keeps != self.generation:
            self._keeps = self.generation
            for one in self.members:
                self.members.give(one, request.assignments.get(one.id, b""))
                one.heard = now
            self._keep(partial(self._settle, self.generation))

    def _keep(self, done: Done) -> None:
        """Store the members and their assignments."""
        assert self.protocol_type is not None
        assert self.protocol is not None
        members = tuple(one.stored() for one in self.members)
        kept = StoredGroup(self.generation, self.protocol_type, self.protocol, self.leader, members)
        self._rules.keep(self.id, kept, done)

    def _settle(self, generation: int, error: BrokerError | None) -> None:
        """Answer the waiting SyncGroups, unless a rebalance has begun meanwhile. If the assignment
        could not be stored, the leader has to send it again.
        """
        if (
            self.state is not ClassicGroupState.COMPLETING_REBALANCE
            or generation != self.generation
        ):
            return
        self._keeps = 0
        self.due = 0.0
        if error is None:
            self._enter(ClassicGroupState.STABLE)
        for one in self.members:
            if error is None:
                one.answer_sync(self._task(one))
            else:
                self.members.give(one, b"")
                one.answer_sync(Synced(error_code=COORDINATOR_NOT_AVAILABLE))

    def _refusal_of_sync(self, request: Syncing) -> int:
        code = self.check(request.member_id, request.generation, request.instance_id)
        if code != NONE:
            return code
        if self.state is ClassicGroupState.PREPARING_REBALANCE:
            return REBALANCE_IN_PROGRESS
        if (
            request.protocol_type not in (None, self.protocol_type)
            or request.protocol not in (None, self.protocol)
        ):  # fmt: skip
            return INCONSISTENT_GROUP_PROTOCOL
        given = sum(map(len, request.assignments.values()))
        if self.state is ClassicGroupState.COMPLETING_REBALANCE and not self._memory.has(given):
            return COORDINATOR_NOT_AVAILABLE
        return NONE

    def _task(self, member: ClassicMember) -> Synced:
        return Synced(
            protocol_type=self.protocol_type, protocol=self.protocol, assignment=member.assignment
        )

    # -- staying and leaving -------------------------------------------------------------------

    def check(self, member_id: str, generation: int, instance_id: str | None = None) -> int:
        """Whether a request comes from a member of this generation."""
        if self.state is ClassicGroupState.DEAD:
            return UNKNOWN_MEMBER_ID
        known = member_id if instance_id is None else self.members.static(instance_id)
        if known is None or (known == member_id and self.members.get(member_id) is None):
            return UNKNOWN_MEMBER_ID
        if known != member_id:
            return FENCED_INSTANCE_ID
        return NONE if generation == self.generation else ILLEGAL_GENERATION

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None, now: float
    ) -> int:
        """Process a heartbeat; the error code may request to rejoin."""
        return self._lives(
            member_id, generation, instance_id, now, not_in=ClassicGroupState.PREPARING_REBALANCE
        )

    def may_commit(
        self, member_id: str, generation: int, instance_id: str | None, now: float
    ) -> int:
        """Check a commit of a member, which is refused while the member waits for SyncGroup."""
        return self._lives(
            member_id, generation, instance_id, now, not_in=ClassicGroupState.COMPLETING_REBALANCE
        )

    def _lives(
        self,
        member_id: str,
        generation: int,
        instance_id: str | None,
        now: float,
        *,
        not_in: ClassicGroupState,
    ) -> int:
        """Check a member and note its sign of life; returns the error code."""
        code = self.check(member_id, generation, instance_id)
        if code != NONE:
            return code
        member = self.members.get(member_id)
        assert member is not None, "just checked"
        member.heard = now
        return REBALANCE_IN_PROGRESS if self.state is not_in else NONE

    def leave(self, member_id: str, instance_id: str | None, now: float) -> int:
        """Remove a member by its id, or by its instance id alone, as administrators do."""
        if instance_id is not None:
            known = self.members.static(instance_id)
            if known is None:
                return UNKNOWN_MEMBER_ID
            if member_id and member_id != known:
                return FENCED_INSTANCE_ID
            member_id = known
        self.due = 0.0
        if self.members.unexpect(member_id):
            if self.state is ClassicGroupState.PREPARING_REBALANCE:
                self._end_round_if_complete(now)
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        self._remove(member, now)
        return NONE

    def _remove(self, member: ClassicMember, now: float) -> None:
        self._drop(member, UNKNOWN_MEMBER_ID)
        if not self.members:
            self.generation += 1
            self._become_empty()
        elif self.state is ClassicGroupState.PREPARING_REBALANCE:
            self._end_round_if_complete(now)
        else:
            self._begin_round(now)

    def _drop(self, member: ClassicMember, code: int) -> None:
        self.members.drop(member)
        if self.leader == member.id:
            self.leader = next((one.id for one in self.members), "")
        member.refuse(code)

    def _become_empty(self) -> None:
        self._enter(ClassicGroupState.EMPTY)
        self.protocol = None
        self.leader = ""
        self._round, self._sync_ends = JoinPhase(NEVER, NEVER), NEVER
        self._rules.keep(self.id, None, unheard)

    def die(self, code: int = UNKNOWN_MEMBER_ID) -> None:
        """End the group: it is deleted, or another broker coordinates it. Waiting calls get the
        code.
        """
        for member in self.members:
            self._drop(member, code)
        for member_id in self.members.overdue(NEVER):
            self.members.unexpect(member_id)
        self._enter(ClassicGroupState.DEAD)

    # -- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Run the timers: end a rebalance, remove expired members."""
        for member_id in self.members.overdue(now):
            self.leave(member_id, None, now)
        for member in self.members:
            if member.expires <= now and member in self.members:
                self._remove(member, now)
        if self._sync_ends <= now:
            self._end_syncing(now)
        if self.state is ClassicGroupState.PREPARING_REBALANCE and self._round.ends <= now:
            self._go_on_gathering(now)
        self.due = min(
            self._round.ends if self.state is ClassicGroupState.PREPARING_REBALANCE else NEVER,
            self._sync_ends,
            self.members.due,
        )

    def _end_syncing(self, now: float) -> None:
        """Remove members that have not sent SyncGroup in time."""
        self._sync_ends = NEVER
        for member in self.members:
            if not member.synced and member in self.members:
                self._remove(member, now)

    def _go_on_gathering(self, now: float) -> None:
        """End the join phase, unless members have joined and it may last longer."""
        if self._round.prolonged(now, self._rules.first_delay_seconds):
            self._look_soon(now)
        else:
            self._end_round(now)

    def _look_soon(self, now: float) -> None:
        """End a join phase with an initial delay of zero in the next turn of the loop. So members
        that join in the same turn are in it, as in Kafka, whose timer of 0 ms runs after the
        requests that are queued (`tryCompleteInitialRebalanceElseSchedule` of 4.3). It does not
        wait for members with a newly assigned id: when they rejoin, all others rejoin, too.
        """
        if self._round.ends <= now:
            self._rules.call_soon(partial(self._look, self._round, now))

    def _look(self, gathering: JoinPhase, now: float) -> None:
        if self.state is ClassicGroupState.PREPARING_REBALANCE and self._round is gathering:
            self._go_on_gathering(now)
