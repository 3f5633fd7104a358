"""A group: its members, its generation, and how it gets from one to the next. Pure.

    EMPTY       nobody is in
    JOINING     members come (again), until all who are known have, or their time is over
    SYNCING     the leader works out who does what; the others wait for it
    STABLE      everybody has been told
    DEAD        deleted: whoever holds it looks for another

A round begins when somebody joins, leaves, is silent for too long, or joins again with something
new; it ends with a higher generation. Time is given to each call; `tick` does what is due.

Invariants: who waits for a join or a sync is told once; in SYNCING and STABLE there is a leader,
who is a member; a static member (one with an instance id) is in once.
"""

from __future__ import annotations

import enum
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from wire.kafka.errors import (
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from wire.kafka.groups.member import Joined, Joining, Member, Synced

NEVER = float("inf")


class State(enum.Enum):
    """Called by the names that tools show."""

    EMPTY = "Empty"
    JOINING = "PreparingRebalance"
    SYNCING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Group:
    """See the module's docstring."""

    def __init__(self, group_id: str, size_max: int, first_delay_seconds: float) -> None:
        self.id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader = ""
        self.members: dict[str, Member] = {}
        self.emptied_at = 0.0
        """Since when nobody is in it."""
        self._size_max = size_max
        self._first_delay_seconds = first_delay_seconds
        self._static: dict[str, str] = {}
        """Members by instance."""
        self._expected: dict[str, float] = {}
        """Ids that were given out, and until when their owners may come back with them."""
        self._round_ends = NEVER
        self._gathers = False
        """A first round: it goes on until its end, for others may come."""

    # -- joining ------------------------------------------------------------------------------

    def join(self, request: Joining, now: float, done: Callable[[Joined], None]) -> None:
        """Come in, or come again; `done` hears the result when the round is over."""
        refusal = self._refusal(request)
        if refusal != NONE:
            done(Joined(error_code=refusal, member_id=request.member_id))
            return
        member = self.members.get(request.member_id)
        if member is None and request.instance_id in self._static:
            self._replace(request, now, done)
        elif member is None:
            self._newcomer(request, now, done)
        else:
            self._again(member, request, now, done)

    def _refusal(self, request: Joining) -> int:
        """Why this request cannot be, whoever sends it."""
        if self.state is State.DEAD:
            return UNKNOWN_MEMBER_ID
        known = self._static.get(request.instance_id or "")
        if request.member_id and known not in (None, request.member_id):
            return FENCED_INSTANCE_ID
        if not request.protocols or not request.protocol_type:
            return INCONSISTENT_GROUP_PROTOCOL
        others = [one for one in self.members.values() if one.id != request.member_id]
        if others and (
            request.protocol_type != self.protocol_type
            or not set(_names(request)) & self._common(others)
        ):
            return INCONSISTENT_GROUP_PROTOCOL
        if request.member_id and request.member_id not in self.members:
            return NONE if request.member_id in self._expected else UNKNOWN_MEMBER_ID
        if not request.member_id and len(self.members) >= self._size_max:
            return GROUP_MAX_SIZE_REACHED
        return NONE

    def _newcomer(self, request: Joining, now: float, done: Callable[[Joined], None]) -> None:
        member_id = request.member_id or _new_id(request)
        if not request.member_id and request.id_required and request.instance_id is None:
            self._expected[member_id] = now + request.session_seconds
            done(Joined(error_code=MEMBER_ID_REQUIRED, member_id=member_id))
            return
        self._expected.pop(member_id, None)
        self._add(Member(member_id, request, now), done)
        self._begin_round(now)

    def _add(self, member: Member, done: Callable[[Joined], None]) -> None:
        member.join_waits = done
        self.members[member.id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id
        self.protocol_type = member.request.protocol_type
        self.leader = self.leader or member.id

    def _replace(self, request: Joining, now: float, done: Callable[[Joined], None]) -> None:
        """A static member has come back without its id: it gets a new one, and nothing else
        changes if it brings nothing new.
        """
        assert request.instance_id is not None
        old = self.members.pop(self._static[request.instance_id])
        _tell_fenced(old)
        member = Member(_new_id(request), request, now)
        member.assignment = old.assignment
        leads = self.leader == old.id
        if leads:
            self.leader = member.id
        self._add(member, done)
        same = old.request.protocols == request.protocols
        if self.state is State.STABLE and same:
            member.join_waits = None
            done(self._result(member, everybody=leads, skip=leads))
        elif self.state is not State.EMPTY:
            self._begin_round(now)

    def _again(
        self, member: Member, request: Joining, now: float, done: Callable[[Joined], None]
    ) -> None:
        same = member.request.protocols == request.protocols
        member.request, member.heard = request, now
        leads = member.id == self.leader
        if (self.state is State.SYNCING and same) or (
            self.state is State.STABLE and same and not leads
        ):
            done(self._result(member, everybody=leads))  # it has not heard, or asks in vain
            return
        member.join_waits = done
        self._begin_round(now)

    def _begin_round(self, now: float) -> None:
        """Have everybody come again; who is in the middle of a sync is told so."""
        if self.state is not State.JOINING:
            first = self.state is State.EMPTY
            for member in self.members.values():
                self._tell_synced(member, Synced(error_code=REBALANCE_IN_PROGRESS))
            self.state = State.JOINING
            wait = max(one.request.rebalance_seconds for one in self.members.values())
            self._gathers = first and self._first_delay_seconds > 0
            self._round_ends = now + (self._first_delay_seconds if self._gathers else wait)
        self._end_round_if_complete(now)

    def _end_round_if_complete(self, now: float) -> None:
        if self._gathers:
            return
        if all(member.join_waits is not None for member in self.members.values()):
            self._end_round(now)

    def _end_round(self, now: float) -> None:
        """Whoever has not come is out; a static member stays until it is silent for too long."""
        for member in list(self.members.values()):
            if member.join_waits is None and member.instance_id is None:
                self._drop(member)
        self._round_ends, self._gathers = NEVER, False
        self.generation += 1
        if not self.members:
            self._become_empty(now)
            return
        if self.leader not in self.members or self.members[self.leader].join_waits is None:
            waiting = [one.id for one in self.members.values() if one.join_waits is not None]
            self.leader = (waiting or list(self.members))[0]
        self.protocol = self._elected()
        self.state = State.SYNCING
        for member in self.members.values():
            member.assignment = b""
            member.heard = now
            done, member.join_waits = member.join_waits, None
            if done is not None:
                done(self._result(member, everybody=member.id == self.leader))

    def _result(self, member: Member, *, everybody: bool, skip: bool = False) -> Joined:
        assert self.protocol is not None
        members = self.members.values() if everybody else ()
        return Joined(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader,
            member_id=member.id,
            members=tuple(
                (one.id, one.instance_id, one.metadata(self.protocol)) for one in members
            ),
            skip_assignment=skip,
        )

    @staticmethod
    def _common(members: Iterable[Member]) -> set[str]:
        """Protocols that all of them have."""
        return set.intersection(*(set(_names(one.request)) for one in members))

    def _elected(self) -> str:
        """Each votes for the first of its protocols that all have."""
        common = self._common(self.members.values())
        votes = Counter(
            next(name for name in _names(one.request) if name in common)
            for one in self.members.values()
        )
        return votes.most_common(1)[0][0]

    # -- syncing ------------------------------------------------------------------------------

    def sync(
        self,
        member_id: str,
        generation: int,
        instance_id: str | None,
        assignments: Mapping[str, bytes],
        now: float,
        done: Callable[[Synced], None],
    ) -> None:
        """Hear what to do; the leader says it, for everybody."""
        code = self.check(member_id, generation, instance_id)
        if code == NONE and self.state is State.JOINING:
            code = REBALANCE_IN_PROGRESS
        if code != NONE:
            done(Synced(error_code=code))
            return
        member = self.members[member_id]
        member.heard = now
        if self.state is State.STABLE:
            done(self._task(member))
            return
        member.sync_waits = done
        if member_id == self.leader:
            self.state = State.STABLE
            for one in self.members.values():
                one.assignment = assignments.get(one.id, b"")
                one.heard = now
                self._tell_synced(one, self._task(one))

    def _task(self, member: Member) -> Synced:
        return Synced(
            protocol_type=self.protocol_type, protocol=self.protocol, assignment=member.assignment
        )

    @staticmethod
    def _tell_synced(member: Member, result: Synced) -> None:
        done, member.sync_waits = member.sync_waits, None
        if done is not None:
            done(result)

    # -- staying and leaving -------------------------------------------------------------------

    def check(self, member_id: str, generation: int, instance_id: str | None = None) -> int:
        """Whether a request comes from a member of this generation."""
        if self.state is State.DEAD:
            return UNKNOWN_MEMBER_ID
        if instance_id is not None and instance_id in self._static:
            if self._static[instance_id] != member_id:
                return FENCED_INSTANCE_ID
        elif instance_id is not None:
            return UNKNOWN_MEMBER_ID
        if member_id not in self.members:
            return UNKNOWN_MEMBER_ID
        return NONE if generation == self.generation else ILLEGAL_GENERATION

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None, now: float
    ) -> int:
        """A sign of life; the answer may be to join again."""
        code = self.check(member_id, generation, instance_id)
        if code == NONE:
            self.members[member_id].heard = now
            if self.state is State.JOINING:
                return REBALANCE_IN_PROGRESS
        return code

    def may_commit(
        self, member_id: str, generation: int, instance_id: str | None, now: float
    ) -> int:
        """Whether a member may say how far it is: not while it waits for its task."""
        code = self.check(member_id, generation, instance_id)
        if code == NONE:
            self.members[member_id].heard = now
            if self.state is State.SYNCING:
                return REBALANCE_IN_PROGRESS
        return code

    def leave(self, member_id: str, instance_id: str | None, now: float) -> int:
        """Go: by id, or by instance alone, as administrators have somebody go."""
        if instance_id is not None:
            known = self._static.get(instance_id)
            if known is None:
                return UNKNOWN_MEMBER_ID
            if member_id and member_id != known:
                return FENCED_INSTANCE_ID
            member_id = known
        if self._expected.pop(member_id, None) is not None:
            return NONE
        if member_id not in self.members:
            return UNKNOWN_MEMBER_ID
        self._remove(self.members[member_id], now)
        return NONE

    def _remove(self, member: Member, now: float) -> None:
        self._drop(member)
        if not self.members:
            self.generation += 1
            self._become_empty(now)
        elif self.state is State.JOINING:
            self._end_round_if_complete(now)
        else:
            self._begin_round(now)

    def _drop(self, member: Member) -> None:
        del self.members[member.id]
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        if self.leader == member.id:
            self.leader = next(iter(self.members), "")
        _tell_unknown(member)

    def _become_empty(self, now: float) -> None:
        self.state = State.EMPTY
        self.protocol = None
        self.leader = ""
        self.emptied_at = now
        self._round_ends = NEVER

    def die(self) -> None:
        """It is deleted."""
        for member in list(self.members.values()):
            self._drop(member)
        self.state = State.DEAD

    # -- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Do what is due: a round whose time is over, members that were silent for too long."""
        for member_id, until in list(self._expected.items()):
            if until <= now:
                del self._expected[member_id]
        for member in list(self.members.values()):
            if member.expires <= now and member.id in self.members:
                self._remove(member, now)
        if self.state is State.JOINING and self._round_ends <= now:
            self._end_round(now)


def _names(request: Joining) -> list[str]:
    return [name for name, _ in request.protocols]


def _new_id(request: Joining) -> str:
    return f"{request.instance_id or request.client_id}-{uuid.uuid4()}"


def _tell_unknown(member: Member) -> None:
    """Whoever waits for something in this member's name waits in vain."""
    _tell(member, UNKNOWN_MEMBER_ID)


def _tell_fenced(member: Member) -> None:
    _tell(member, FENCED_INSTANCE_ID)


def _tell(member: Member, code: int) -> None:
    if member.join_waits is not None:
        member.join_waits(Joined(error_code=code, member_id=member.id))
        member.join_waits = None
    if member.sync_waits is not None:
        member.sync_waits(Synced(error_code=code))
        member.sync_waits = None
