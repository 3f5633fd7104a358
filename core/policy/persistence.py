"""How a topic is stored: on how many bookies, and how often positions of subscriptions are. Pure.

What tools send is stored with Pulsar's names. A value that cannot be, such as an ack quorum larger
than the write quorum, decides nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


class Persistence(Struct, frozen=True, rename="camel"):
    """What is left out is stored by Apache's broker (4.2) as these values."""

    bookkeeper_ensemble: int = 2
    """How many bookies a new ledger is spread over."""
    bookkeeper_write_quorum: int = 2
    """How many of them store each entry."""
    bookkeeper_ack_quorum: int = 2
    """How many of those must have stored an entry before it is acknowledged."""
    managed_ledger_max_mark_delete_rate: float = -1.0
    """How often in a second the position of a subscription may be stored; 0 for no such limit, and
    less leaves it to the broker, which has none.
    """

    @property
    def can_be(self) -> bool:
        """Whether the sizes make sense together."""
        ensemble, write = self.bookkeeper_ensemble, self.bookkeeper_write_quorum
        return ensemble >= write >= self.bookkeeper_ack_quorum > 0


ONE_COPY = Persistence(1, 1, 1, 0.0)
"""Of a server with a bookie of its own."""


def persistence_of(sent: Any) -> Persistence | None:
    """Read what tools have sent; None if it decides nothing."""
    try:
        read = msgspec.convert(sent, Persistence, strict=False)
    except msgspec.ValidationError:
        return None
    return read if read.can_be else None


def show_persistence(value: Persistence | None) -> Any:
    """The JSON value of what is in force; that of one copy where the store decides."""
    return msgspec.to_builtins(value or ONE_COPY)
