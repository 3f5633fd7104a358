"""One member of a classic group, and the requests and results of the group protocol. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from magnetar.wire.kafka.errors import REBALANCE_IN_PROGRESS
from magnetar.wire.kafka.groups.classic.group_record import StoredMember
from magnetar.wire.kafka.groups.memory_budget import MEMBER_BYTES, size_of

NEVER: Final = float("inf")
NEWCOMER_SECONDS: Final = 300.0
"""The longest wait of a new member's JoinGroup, whose client may be gone."""


class Joined(Struct, frozen=True):
    """The result of JoinGroup."""

    error_code: int = 0
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member_id: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Id, instance and metadata of all members, for the leader."""
    skip_assignment: bool = False


class Synced(Struct, frozen=True):
    """The result of SyncGroup."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Joining(Struct, frozen=True):
    """A JoinGroup request."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    id_required: bool
    """Whether a new member has to rejoin with the id that it is given (KIP-394)."""
    may_skip: bool = True
    """Whether a returning leader can skip the assignment (KIP-814)."""

    @property
    def names(self) -> list[str]:
        """The names of its protocols, the preferred one first."""
        return [name for name, _ in self.protocols]


class Syncing(Struct, frozen=True):
    """A SyncGroup request."""

    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    """None if the client does not state it."""
    protocol: str | None = None
    assignments: Mapping[str, bytes] = {}
    """From the leader: the assignments of all members."""


class ClassicMember:
    """See the module's docstring."""

    __slots__ = (
        "assignment",
        "heard",
        "id",
        "instance_id",
        "is_new",
        "join_waits",
        "request",
        "sync_waits",
        "synced",
    )

    def __init__(self, member_id: str, request: Joining, now: float) -> None:
        self.id = member_id
        self.instance_id = request.instance_id
        """The id of a static member (KIP-345), constant during its membership."""
        self.request = request
        self.assignment = b""
        self.heard = now
        """The time of its last sign of life."""
        self.is_new = True
        """Whether its first rebalance is not complete yet."""
        self.synced = True
        """Whether it has sent SyncGroup since the last rebalance."""
        self.join_waits: Callable[[Joined], None] | None = None
        self.sync_waits: Callable[[Synced], None] | None = None

    @property
    def expires(self) -> float:
        """The time at which its session expires. A member with a waiting call is alive."""
        if self.join_waits is not None and self.is_new:
            return self.heard + NEWCOMER_SECONDS
        if self.join_waits is not None or self.sync_waits is not None:
            return NEVER
        return self.heard + self.request.session_seconds

    @property
    def size(self) -> int:
        """Its approximate memory."""
        return size_of_member(self.request) + len(self.assignment)

    def stored(self) -> StoredMember:
        """The member in stored form."""
        said = self.request
        return StoredMember(
            self.id,
            self.instance_id,
            said.client_id,
            said.host,
            said.session_seconds,
            said.rebalance_seconds,
            said.protocols,
            self.assignment,
        )

    def metadata(self, protocol: str) -> bytes:
        return next(data for name, data in self.request.protocols if name == protocol)

    def joins(self, done: Callable[[Joined], None]) -> None:
        """Wait for the end of the rebalance; an earlier waiting JoinGroup is answered now."""
        self.answer_join(Joined(error_code=REBALANCE_IN_PROGRESS, member_id=self.id))
        self.join_waits = done

    def syncs(self, done: Callable[[Synced], None]) -> None:
        """Wait for its assignment; an earlier waiting SyncGroup is answered now."""
        self.answer_sync(Synced(error_code=REBALANCE_IN_PROGRESS))
        self.sync_waits = done

    def answer_join(self, result: Joined) -> None:
        done, self.join_waits = self.join_waits, None
        if done is not None:
            done(result)

    def answer_sync(self, result: Synced) -> None:
        done, self.sync_waits = self.sync_waits, None
        if done is not None:
            done(result)

    def refuse(self, code: int) -> None:
        """Answer its waiting calls with an error."""
        self.answer_join(Joined(error_code=code, member_id=self.id))
        self.answer_sync(Synced(error_code=code))


def resumed(kept: StoredMember, protocol_type: str, now: float) -> ClassicMember:
    """Restore a member after a restart."""
    request = Joining(
        member_id=kept.member_id,
        instance_id=kept.instance_id,
        client_id=kept.client_id,
        host=kept.host,
        session_seconds=kept.session_seconds,
        rebalance_seconds=kept.rebalance_seconds,
        protocol_type=protocol_type,
        protocols=kept.protocols,
        id_required=False,
    )
    member = ClassicMember(kept.member_id, request, now)
    member.assignment, member.is_new = kept.assignment, False
    return member


def size_of_member(request: Joining) -> int:
    """The approximate memory of a member with this request, without an assignment."""
    words = (request.client_id, request.host, request.instance_id or "", request.protocol_type)
    return MEMBER_BYTES + 4 * sum(map(len, words)) + size_of(request.protocols)
