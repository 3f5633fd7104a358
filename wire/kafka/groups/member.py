"""One member of a group."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Joined(Struct, frozen=True):
    """What a member hears when a round of joining is over."""

    error_code: int = 0
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member_id: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Id, instance and metadata of everybody, for the leader."""
    skip_assignment: bool = False


class Synced(Struct, frozen=True):
    """What a member is to do."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Joining(Struct, frozen=True):
    """A request to join."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    id_required: bool
    """Whether a newcomer has to come again with the id it is given."""


class Member:
    """See the module's docstring."""

    __slots__ = (
        "assignment",
        "heard",
        "id",
        "join_waits",
        "request",
        "sync_waits",
    )

    def __init__(self, member_id: str, request: Joining, now: float) -> None:
        self.id = member_id
        self.request = request
        self.assignment = b""
        self.heard = now
        """When it last gave a sign of life."""
        self.join_waits: Callable[[Joined], None] | None = None
        self.sync_waits: Callable[[Synced], None] | None = None

    @property
    def instance_id(self) -> str | None:
        return self.request.instance_id

    @property
    def expires(self) -> float:
        """Without a sign of life until then it is gone. Who waits for us is alive."""
        if self.join_waits is not None or self.sync_waits is not None:
            return float("inf")
        return self.heard + self.request.session_seconds

    def metadata(self, protocol: str) -> bytes:
        return next(data for name, data in self.request.protocols if name == protocol)
