"""What is kept of a group of the classic protocol, so that its members survive a restart. Pure.

It is as things stood when everybody was last told what to do. A round that was not over then is
forgotten: its members call again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from core.errors import BrokerError


class KeptMember(Struct, frozen=True, array_like=True):
    """One member, with all that it said when it joined, and what it is to do."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes


class Kept(Struct, frozen=True, array_like=True):
    """See the module's docstring."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[KeptMember, ...]


Done = Callable[[BrokerError | None], None]
Keep = Callable[[str, Kept | None, Done], None]
"""Keep this of that group, or nothing any more, and tell when the disk has it, or why not."""

encode: Final = msgspec.msgpack.encode
decode: Final = msgspec.msgpack.Decoder(Kept).decode
