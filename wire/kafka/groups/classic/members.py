"""The members of a group, which of them are static, and the ids handed out. Pure.

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
        """Members by instance."""
        self._knowing: Counter[str] = Counter()
        """How many know each protocol; counted as members come and go, since each join needs it."""
        self._expected: dict[str, float] = {}
        """Ids that were given out, and until when their owners may come back with them."""

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
        """The id of the member that is this instance."""
        return None if instance_id is None else self._static.get(instance_id)

    def knowing(self, protocol: str) -> int:
        """How many members know a protocol."""
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
        """It has come again, with something new perhaps."""
        self._memory.take(size_of_member(request) - size_of_member(member.request))
        self._learn(member.request, -1)
        self._learn(request, 1)
        member.request = request

    def give(self, member: ClassicMember, assignment: bytes) -> None:
        """It is to do this from now on."""
        self._memory.take(len(assignment) - len(member.assignment))
        member.assignment = assignment

    # -- ids that are out ---------------------------------------------------------------------

    @property
    def expected(self) -> int:
        """How many ids are out."""
        return len(self._expected)

    def expects(self, member_id: str) -> bool:
        return member_id in self._expected

    def expect(self, member_id: str, until: float) -> None:
        """Its owner may come back with it until then."""
        self._memory.take(ID_BYTES + 4 * len(member_id))
        self._expected[member_id] = until

    def unexpect(self, member_id: str) -> bool:
        """Its owner has come, or will not come: returns whether the id was handed out."""
        if self._expected.pop(member_id, None) is None:
            return False
        self._memory.take(-ID_BYTES - 4 * len(member_id))
        return True

    def overdue(self, now: float) -> list[str]:
        """Ids whose owners have not come back in time."""
        return [member_id for member_id, until in self._expected.items() if until <= now]

    @property
    def due(self) -> float:
        """No member expires before."""
        return min(
            min(self._expected.values(), default=NEVER),
            min((member.expires for member in self._members.values()), default=NEVER),
        )
