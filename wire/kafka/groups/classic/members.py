"""The members of a classic group, static ones among them, and the assigned member ids. Pure.

Invariants: a static member is in the group once; memory is reserved for each member, and released
when it leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from magnetar.wire.kafka.groups.classic.member import NEVER, ClassicMember, Joining, size_of_member
from magnetar.wire.kafka.groups.memory_budget import ID_BYTES, GroupMemory


class Members:
    """See the module's docstring."""

    __slots__ = ("_expected", "_knowing", "_members", "_memory", "_static")

    def __init__(self, memory: GroupMemory) -> None:
        self._memory = memory
        self._members: dict[str, ClassicMember] = {}
        self._static: dict[str, str] = {}
        """Member ids by instance id."""
        self._knowing: Counter[str] = Counter()
        """The number of members that support each protocol; each join needs it."""
        self._expected: dict[str, float] = {}
        """Assigned ids whose clients have not rejoined, with the time until which they may."""

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[ClassicMember]:
        """All current members; they may leave during iteration."""
        return iter(list(self._members.values()))

    def __contains__(self, member: ClassicMember) -> bool:
        return self._members.get(member.id) is member

    def get(self, member_id: str) -> ClassicMember | None:
        return self._members.get(member_id)

    def static(self, instance_id: str | None) -> str | None:
        """The id of the static member with that instance id."""
        return None if instance_id is None else self._static.get(instance_id)

    def knowing(self, protocol: str) -> int:
        """The number of members that support a protocol."""
        return self._knowing[protocol]

    def _learn(self, request: Joining, count: int) -> None:
        for name in set(request.names):
            self._knowing[name] += count
            if not self._knowing[name]:
                del self._knowing[name]

    def add(self, member: ClassicMember) -> None:
        self._memory.take(member.size)
        self._learn(member.request, 1)
        self._members[member.id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id

    def drop(self, member: ClassicMember) -> None:
        del self._members[member.id]
        self._memory.take(-member.size)
        self._learn(member.request, -1)
        if member.instance_id is not None:
            del self._static[member.instance_id]

    def change(self, member: ClassicMember, request: Joining) -> None:
        """Update a member that rejoins."""
        self._memory.take(size_of_member(request) - size_of_member(member.request))
        self._learn(member.request, -1)
        self._learn(request, 1)
        member.request = request

    def give(self, member: ClassicMember, assignment: bytes) -> None:
        """Set the assignment of a member."""
        self._memory.take(len(assignment) - len(member.assignment))
        member.assignment = assignment

    # -- ids that are out ---------------------------------------------------------------------

    @property
    def expected(self) -> int:
        """The number of assigned ids whose clients have not rejoined."""
        return len(self._expected)

    def expects(self, member_id: str) -> bool:
        return member_id in self._expected

    def expect(self, member_id: str, until: float) -> None:
        """Note an assigned id, with which its client may rejoin until then."""
        self._memory.take(ID_BYTES + 4 * len(member_id))
        self._expected[member_id] = until

    def unexpect(self, member_id: str) -> bool:
        """Remove an assigned id; returns whether it was noted."""
        if self._expected.pop(member_id, None) is None:
            return False
        self._memory.take(-ID_BYTES - 4 * len(member_id))
        return True

    def overdue(self, now: float) -> list[str]:
        """Assigned ids whose clients have not rejoined in time."""
        return [member_id for member_id, until in self._expected.items() if until <= now]

    @property
    def due(self) -> float:
        """The earliest time at which a member or an assigned id expires."""
        return min(
            min(self._expected.values(), default=NEVER),
            min((member.expires for member in self._members.values()), default=NEVER),
        )
