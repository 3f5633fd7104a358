"""The choice of a protocol (assignor) that all members support. Pure.

The metadata of a protocol is opaque here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from magnetar.wire.kafka.groups.classic.member import ClassicMember, Joining
from magnetar.wire.kafka.groups.classic.members import Members


def common(members: Iterable[ClassicMember]) -> set[str]:
    """The protocols that all members support."""
    return set.intersection(*(set(one.request.names) for one in members))


def fits(
    request: Joining, protocol_type: str | None, members: Members, before: ClassicMember | None
) -> bool:
    """Whether these protocols are compatible with all members except the replaced one."""
    if not request.protocols or not request.protocol_type:
        return False
    others = len(members) - (before is not None)
    if not others:
        return True
    known = set(before.request.names) if before is not None else set[str]()
    shared = any(members.knowing(name) - (name in known) == others for name in request.names)
    return shared and request.protocol_type == protocol_type


def elected(members: Iterable[ClassicMember]) -> str:
    """The protocol with most votes: each member votes for its first one that all support."""
    members = list(members)
    shared = common(members)
    votes = Counter(next(name for name in one.request.names if name in shared) for one in members)
    return votes.most_common(1)[0][0]
